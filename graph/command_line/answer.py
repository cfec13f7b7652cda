"""``daruma answer``: reply to what a thread asks, and go on."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from daruma.graph.command_line.options import AsJson, Model, Submit, ThreadName, Yes

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from daruma.graph.command_line.session import Go

_BARE = ("--approve", "--deny")
_ALL = "*"

Ids = list[str]


class BareDecisions(TyperCommand):
    """A command whose ``--approve`` and ``--deny`` may stand without an id: all that is open."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_all(args))


def with_all(args: Sequence[str]) -> list[str]:
    """Give ``--approve`` and ``--deny`` the value ``*`` where none follows."""
    followed = zip(args, [*args[1:], "-"], strict=True)
    return [
        f"{arg}={_ALL}" if arg in _BARE and following.startswith("-") else arg
        for arg, following in followed
    ]


def answer(  # noqa: PLR0913  # each is an option of the command
    thread: ThreadName,
    *,
    confirm: Annotated[bool, typer.Option("--confirm", help="The plan is right.")] = False,
    reject: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The plan is not right: what to change.")
    ] = None,
    edit: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|ID",
            help="Run the plan in this JSON file instead; or, with --args, change this call.",
        ),
    ] = None,
    args: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="The arguments that the call of --edit ID runs with."),
    ] = None,
    approve: Annotated[
        Ids | None,
        typer.Option(
            metavar="[ID[@DIGEST]]", help="Let a call run, or a recovery be; all without an id."
        ),
    ] = None,
    deny: Annotated[
        Ids | None, typer.Option(metavar="[ID]", help="Do not let it; all without an id.")
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why it is denied.")] = "",
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="An answer, or what to do instead."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Which question is answered, where several are open."),
    ] = None,
    model: Model = None,
    submit: Submit = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Answer what a thread waits for, and go on with it. `daruma show THREAD` says what that is.

    On a terminal, without an answer among the options, each question is asked there.
    """
    from langgraph.types import Command

    from daruma.graph.command_line.conversation import Conversation
    from daruma.graph.command_line.given_answer import Given
    from daruma.graph.command_line.session import Go, Session
    from daruma.graph.command_line.talk import talk_of

    given = Given(confirm, reject, edit, approve or (), deny or (), reason, text, args, to)
    talk = talk_of(submit=submit, yes=yes, json=json)
    if given == Given() and isinstance(talk, Conversation) and talk.asks:
        raise typer.Exit(talk.hold(Session(thread, model=model), lambda _: None))
    given.check()

    def replying(snapshot: "StateSnapshot") -> "Go":
        return Go(Command(resume=given.replies(thread, snapshot.interrupts)))

    code = talk.hold(Session(thread, model=model), replying)
    raise typer.Exit(code)
