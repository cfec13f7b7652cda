"""``daruma run`` and ``daruma resume``: a new task, and going on with one."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line import completing
from daruma.graph.command_line.options import AsJson, Model, Submit, ThreadName, Yes
from daruma.graph.command_line.thread_names import checked_thread_name, new_thread_name
from daruma.state.mode import MODES

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from daruma.graph.command_line.session import Go


def run(  # noqa: PLR0913  # each is an option of the command
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What is to be done, in words.")],
    *,
    workspace: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Folder to work in; without one there are no file tools."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help=f"{', '.join(MODES)}; else by @plan or @chat, or the settings'.",
            autocompletion=completing.modes,
        ),
    ] = None,
    model: Model = None,
    thread: Annotated[
        str | None,
        typer.Option(
            metavar="THREAD",
            help="Name of the thread; else a new one.",
            autocompletion=completing.threads,
        ),
    ] = None,
    trust_settings: Annotated[
        bool,
        typer.Option(
            "--trust-settings", help="Use daruma.yaml though an earlier task may have changed it."
        ),
    ] = False,
    submit: Submit = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Run a task on a thread. Everything it does is kept: it can be stopped and resumed."""
    from daruma.graph.command_line.session import Go, Session
    from daruma.graph.command_line.talk import talk_of

    if not goal.strip():
        raise typer.BadParameter("say what is to be done", param_hint="GOAL")
    name = new_thread_name() if thread is None else checked_thread_name(thread)
    given = {"messages": [("user", goal)], "mode": mode, "workspace": workspace}
    session = Session(
        name, model=model, folder=Path.cwd(), workspace=workspace, trust=trust_settings
    )
    talk = talk_of(submit=submit, yes=yes, json=json)
    code = talk.hold(session, lambda _: Go(given))
    raise typer.Exit(code)


def resume(
    thread: ThreadName,
    *,
    submit: Submit = False,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="ID", help="An earlier checkpoint, where the newest is damaged."
        ),
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
    model: Model = None,
) -> None:
    """Go on with a thread: unfinished work, an open question; a finished one tells its result."""
    from daruma.graph.command_line.session import Session
    from daruma.graph.command_line.talk import talk_of

    talk = talk_of(submit=submit, yes=yes, json=json)
    code = talk.hold(Session(thread, model=model, start=start), unfinished)
    raise typer.Exit(code)


def retry(
    thread: ThreadName,
    *,
    call: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only this tool call: run it, or ask for it, again."),
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
    model: Model = None,
) -> None:
    """Try again what failed, from where it stood: a model call, a tool call, a denied approval."""
    from daruma.graph.command_line.conversation import Conversation
    from daruma.graph.command_line.session import Go, Session

    again = Go(None, reopen=True, call=call)
    code = Conversation(yes=yes, json=json).hold(Session(thread, model=model), lambda _: again)
    raise typer.Exit(code)


def unfinished(snapshot: "StateSnapshot") -> "Go | None":
    """Go on with work that was interrupted; a result, or an open question, is nothing to run.

    A review whose deadline has passed is parked.
    """
    from daruma.graph.command_line.session import Go
    from daruma.graph.unfinished import is_unfinished

    return Go(None) if is_unfinished(snapshot, time.time()) else None
