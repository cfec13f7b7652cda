"""``daruma demo``: a shipped scenario on a real repository, without a key or a server."""

from typing import Annotated

import typer

from daruma.graph.command_line import completing
from daruma.graph.command_line.options import AsJson


def demo(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="[SCENARIO]", help="Which one.", autocompletion=completing.scenarios
        ),
    ] = "fix",
    *,
    names: Annotated[bool, typer.Option("--list", help="Say which scenarios there are.")] = False,
    json: AsJson = False,
) -> None:
    """See Daruma at work: real files, real tests, a real database; only the model is scripted."""
    from daruma.graph.command_line.demo import prepare, scenario_named, scenarios

    if names:
        for each in scenarios():
            typer.echo(f"{each.name:<10} {each.title}")
        raise typer.Exit
    chosen = scenario_named(scenario)
    repository = prepare(chosen)

    from daruma.graph.command_line.conversation import Conversation
    from daruma.graph.command_line.demo_talk import ASIDES, beginning, ending, reviewer
    from daruma.graph.command_line.session import Go, Session
    from daruma.graph.command_line.thread_names import new_thread_name

    talk = Conversation(json=json, asides=ASIDES)
    talk.automatic = reviewer(talk.paper)
    session = Session(f"demo-{new_thread_name()}", model=chosen.model, folder=repository)
    talk.paper.put(*beginning(chosen, repository))
    code = talk.hold(session, lambda _: Go(chosen.request(repository)))
    talk.paper.put(*ending(session.thread, chosen, code))
    raise typer.Exit(code)
