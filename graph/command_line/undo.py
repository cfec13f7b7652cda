"""``daruma undo``: put the files of a thread's workspace back as they were."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from daruma.graph.command_line.options import ThreadName

if TYPE_CHECKING:
    from daruma.graph.command_line.thread_view import ThreadView
    from daruma.graph.command_line.undo_talk import UndoTalk
    from daruma.tools.snapshots.outcome import Conflicts


def undo(  # each is an option of the command
    thread: ThreadName,
    *,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="A savepoint or a snapshot; else the start of the newest task."
        ),
    ] = None,
    names: Annotated[bool, typer.Option("--list", help="Say where can be gone back to.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave files that somebody else changed too.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Put back files that somebody else changed too.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Say it as one JSON object on standard output.")
    ] = False,
) -> None:
    """Put files back as they were before a thread's newest task, or at one of its savepoints."""
    from rich.console import Console

    from daruma.graph.command_line.paper import Paper
    from daruma.graph.command_line.undo_talk import UndoTalk

    if keep and overwrite:
        raise typer.BadParameter("give one of --keep and --overwrite")
    paper = Paper(Console(stderr=json, highlight=False))
    asks = not json and paper.terminal and sys.stdin is not None and sys.stdin.isatty()
    talk = UndoTalk(paper, yes=yes, json=json, read=input if asks else None)
    if names:
        talk.tell(asyncio.run(_view(thread)))
        return
    conflicts: Conflicts = "keep" if keep else "overwrite" if overwrite else "refuse"
    raise typer.Exit(_put_back(thread, to, conflicts, talk))


async def _view(thread: str) -> "ThreadView":
    from daruma.graph.command_line.thread_view import thread_view
    from daruma.graph.storage.postgres import aopen_postgres

    async with aopen_postgres() as postgres:
        return await thread_view(postgres, thread)


def _put_back(thread: str, to: str | None, conflicts: "Conflicts", talk: "UndoTalk") -> int:
    """Put files back while no run is at work there, from what is shown of it to the end."""
    from langchain_core.runnables import RunnableConfig

    from daruma.graph.build import build_graph
    from daruma.graph.command_line.thread_names import no_such
    from daruma.graph.held import thread_held
    from daruma.graph.storage.postgres import open_postgres
    from daruma.graph.undoing import place_of
    from daruma.state.settings import Settings
    from daruma.tools.files.workspace import workspace_locked

    config = RunnableConfig(configurable={"thread_id": thread})
    with open_postgres() as postgres:
        graph = build_graph(settings=Settings(), persistence=postgres)
        if graph.get_state(config).created_at is None:
            raise no_such(thread)
        with thread_held(postgres.checkpointer, thread):
            place = place_of(graph.get_state(config), to)
            with workspace_locked(place.workspace):
                return talk.hold(place, conflicts, to)
