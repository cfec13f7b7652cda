"""``daruma show``, ``threads``, ``graph`` and ``undo``."""

import asyncio
import json as json_format
import re
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from daruma.graph.command_line._messages import one_line
from daruma.graph.command_line._options import AsJson, ThreadName, in_storage, no_such, paper_of
from daruma.state.errors import DamagedState, DarumaError

if TYPE_CHECKING:
    from langgraph.checkpoint.base import CheckpointTuple

    from daruma.graph.command_line._output import Paper, Table
    from daruma.graph.command_line._undo import UndoTalk
    from daruma.graph.standing import Standing
    from daruma.graph.storage import OldThread, Postgres, Pruned
    from daruma.state.calls import Allowance
    from daruma.tools.snapshots import Conflicts


# --- ``daruma threads`` (alone), ``show`` and ``graph``: looking, without changing anything.


def threads() -> None:
    """List the threads, the one used last first."""
    in_storage(list_threads).show(paper_of())


def inbox(
    *,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only of this kind.")] = None,
    older: Annotated[
        str, typer.Option(metavar="TIME", help="Only what has waited for: 1h, 30min.")
    ] = "0min",
    json: AsJson = False,
    tsv: Annotated[bool, typer.Option("--tsv", help="Tab-separated, on a terminal too.")] = False,
) -> None:
    """List what waits for a person, over all threads, with the command that answers."""
    from daruma.state.interrupts import KINDS

    if kind not in (None, "tool", *KINDS):
        raise typer.BadParameter(f"{kind!r} is no kind: there are {', '.join(KINDS)} and tool")
    seconds = seconds_of(older)

    table = in_storage(lambda postgres: list_questions(postgres, kind, seconds))
    table.show(paper_of(), as_json=json, as_tsv=tsv)


def show(
    thread: ThreadName,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", help="Tell what happens until it stops.")
    ] = False,
    tail: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Only the last N things that happened.")
    ] = None,
    context: Annotated[
        bool, typer.Option("--context", help="Only what the last task's window is spent on.")
    ] = False,
    json: AsJson = False,
    html: Annotated[bool, typer.Option("--html", help="Write it as one HTML page.")] = False,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="Where the page goes; - for standard output."),
    ] = None,
) -> None:
    """Show what happened on a thread, where it stands, and what it waits for."""
    from daruma.graph.command_line import _thread_view as story
    from daruma.graph.command_line._output import context_table

    if html or file:
        if not html or follow or json or context or tail is not None:
            raise typer.BadParameter("FILE goes with --html, and --html with no other option")
        page = in_storage(lambda postgres: story.page_of_thread(postgres, thread))
        story.write_page(thread, file, page)
        return

    paper = paper_of(stderr=follow and json)
    read = partial(story.follow, paper=paper) if follow else partial(story.thread_view, whole=True)
    view = in_storage(lambda postgres: read(postgres, thread))
    if context:
        result = view.stop.result if view.stop else None
        context_table(result.context_usage if result else None).show(paper, as_json=json)
    elif json:
        typer.echo(json_format.dumps(view.to_dict()))
    elif follow:
        story.print_end(paper, view)
    else:
        story.print_story(paper, view, tail)


def graph() -> None:
    """Print the machine as a Mermaid flowchart."""
    from daruma.graph.machine import mermaid

    typer.echo(mermaid(), nl=False)


# --- The lists of threads and of what waits: what is known without any history (FA-13).


async def list_threads(postgres: "Postgres") -> "Table":
    """Return the threads, those that wait for a worker first, then the one written last (FA-13).

    One that is damaged does not hide the others.
    """
    from daruma.graph.command_line._output import Table
    from daruma.graph.standing import standings

    saver = postgres.checkpointer.looking()
    known = await standings(saver.database)
    rows = []
    for each in await postgres.athreads():
        standing = known.pop(each.thread_id, None)
        place = {"thread_id": each.thread_id, "checkpoint_ns": ""}
        try:
            found = await saver.aget_tuple({"configurable": place})
            if found:  # else it was pruned meanwhile
                rows.append(_row(each.thread_id, found, standing))
        except DamagedState as error:
            status = standing.what if standing and standing.is_busy else "damaged"
            rows.append((each.thread_id, status, each.updated_at, str(error)))
    queued = [(s.thread_id, s.what, s.since.astimezone(), s.request) for s in known.values()]
    return Table(
        ("thread", "status", "when", "goal"),
        [*queued, *rows],
        nothing="there are no threads yet: try `daruma demo`",
        cuts=True,
    )


def _row(
    thread: str, found: "CheckpointTuple", standing: "Standing | None"
) -> tuple[str, str, datetime, str]:
    from daruma.graph.standing import read_pending, status_of
    from daruma.state.result import TaskResult, headline_of
    from daruma.state.task import Task

    values: dict[str, Any] = {**found.checkpoint["channel_values"]}
    questions, finished = read_pending(found)
    for written in finished:
        values |= written
    task, result = values.get("task"), values.get("result")
    if not isinstance(task, Task | None) or not isinstance(result, TaskResult | None):
        raise DamagedState("it holds a record in the place of another")
    busy = standing.what if standing and standing.is_busy else ""
    status = busy or status_of(result, questions)
    goal = task.goal if task else standing.request if standing else _asked_of(found, values)
    if result and result.clarification:
        goal += f" (asks: {result.clarification.question})"
    headline = headline_of(status, result.checked.outcome if result else "")
    return thread, headline, datetime.fromisoformat(found.checkpoint["ts"]), goal


def _asked_of(found: "CheckpointTuple", values: dict[str, Any]) -> str:
    """Return what a person said last where another graph keeps the thread, else its nodes."""
    from daruma.tools.text import without_keys

    said = values.get("messages")
    told = [m for m in said if getattr(m, "type", "") == "human"] if isinstance(said, list) else []
    ran, channels = found.checkpoint["versions_seen"], found.checkpoint["channel_versions"]
    branches = (each.partition("branch:to:") for each in channels)
    nodes = {*ran, *(name for none, is_branch, name in branches if is_branch and not none)}
    own = (each for each in nodes if not each.startswith("__"))
    return without_keys(told[-1].text) if told else f"(another graph: {', '.join(sorted(own))})"


async def list_questions(postgres: "Postgres", kind: str | None, older_than: float) -> "Table":
    """Return what waits for a person, each with the command that answers, the longest first."""
    from daruma.graph.command_line._output import Table
    from daruma.graph.command_line._questions import how_to_answer
    from daruma.state.interrupts import is_question
    from daruma.state.serializer import Asked

    rows, values = list[tuple[str | datetime, ...]](), list[dict[str, Any]]()
    for each in await postgres.ainbox(kind=kind, older_than=older_than):
        ours = is_question(each.value)  # its kind may be stored from before
        questions = [Asked(each.value, each.interrupt_id)] if ours else []
        answers = how_to_answer(each.thread_id, questions)
        rows.append((each.thread_id, each.kind, each.since, each.text, *(answers[:1] or [""])))
        values.append(each.to_dict() | {"answers": answers})
    columns = ("thread", "kind", "since", "question", "answer")
    return Table(columns, rows, values=values, nothing="nothing waits for a person", below=2)


# --- ``daruma threads prune``: delete old threads with all that belongs to them.

_UNITS = {"min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def seconds_of(text: str) -> float:
    """Read a length of time such as ``30d``, ``12h``, ``90min`` or ``2w``, in seconds."""
    found = re.fullmatch(r"(\d{1,6})\s*(min|h|d|w)", text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is no length of time: say 30d, 12h, 90min or 2w")
    return float(found[1]) * _UNITS[found[2]]


def prune(  # each is an option of the command
    *,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Nobody wrote on it for: 30d, 12h.")
    ],
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help="Only of this status; may be given again."),
    ] = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also what waits for a person or can be resumed.")
    ] = False,
    keep_history: Annotated[
        bool,
        typer.Option(
            "--keep-history", help="Keep threads as they stand; drop their earlier steps."
        ),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Give the space back to the disk; locks the tables.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do it without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Delete threads that nobody wrote on for long; never one that is being run."""
    from daruma.graph.command_line._output import Line
    from daruma.graph.storage import PRUNABLE, open_postgres

    paper, seconds = paper_of(), seconds_of(older_than)
    if unknown := [each for each in status or () if each not in PRUNABLE]:
        # It would be taken for one that no old thread has.
        known = ", ".join(sorted(PRUNABLE))
        raise typer.BadParameter(f"{unknown[0]!r} is no status: there are {known}")
    with open_postgres() as postgres:
        old = postgres.old_threads(seconds, status=status, unfinished=unfinished)
        _tell(paper, old)
        if not old or dry_run:
            return
        if not yes and not _wanted(paper, len(old), keep_history=keep_history):
            paper.put(Line("note", "nothing was deleted"))
            return
        pruned = postgres.prune(
            seconds,
            status=status,
            unfinished=unfinished,
            keep_history=keep_history,
            full=full,
            only=[each.thread_id for each in old],
        )
    _told(paper, pruned, keep_history=keep_history)


def size_of(count: float) -> str:
    """Return a number of bytes in its largest unit: ``1.5 MB``."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"


def _tell(paper: "Paper", old: "Sequence[OldThread]") -> None:
    from daruma.graph.command_line._output import Line

    for each in old:
        tail = f"{each.standing}, last written {each.updated_at:%Y-%m-%d}, {size_of(each.size)}"
        paper.put(Line("line", one_line(each.thread_id, 100), tail))
    total = f"{len(old)} threads, {size_of(sum(each.size for each in old))}"
    paper.put(Line("note", total if old else "no thread is that old and may go"))


def _wanted(paper: "Paper", number: int, *, keep_history: bool) -> bool:
    from daruma.graph.command_line._output import agrees

    if not (paper.terminal and sys.stdin is not None and sys.stdin.isatty()):
        raise DarumaError("nothing was deleted: there is nobody to ask, so say it with --yes")
    return agrees(f"{'Thin' if keep_history else 'Delete'} these {number} threads?")


def _told(paper: "Paper", pruned: "Pruned", *, keep_history: bool) -> None:
    from daruma.graph.command_line._output import Line

    done = "thinned" if keep_history else "deleted"
    sizes = f"{size_of(pruned.bytes_before)} before, {size_of(pruned.bytes_after)} now"
    paper.put(Line("ok", f"{len(pruned.threads)} threads {done}", sizes))
    for thread in pruned.busy:
        paper.put(Line("note", f"{thread} was gone on with meanwhile, and stays"))


# --- ``daruma threads``: the list of them, and what can be done with all of them.

threads_app = typer.Typer(
    name="threads", help="List the threads, the one used last first; or prune old ones."
)
threads_app.command("prune")(prune)


@threads_app.callback(invoke_without_command=True)
def listed(context: typer.Context) -> None:
    """List the threads, the one used last first; ``prune`` deletes old ones."""
    if context.invoked_subcommand is None:
        threads()


# --- ``daruma approvals``: what was said yes to for calls to come, and taking it back.

approvals_app = typer.Typer(
    name="approvals", help="List what may run without a question, as you said; or take it back."
)
OfThread = Annotated[
    str | None, typer.Option("--thread", metavar="THREAD", help="That of a thread, too.")
]


@approvals_app.callback(invoke_without_command=True)
def approvals(context: typer.Context) -> None:
    """List what may run without a question in any workspace; ``revoke`` takes it back."""
    if context.invoked_subcommand is None:
        list_approvals()


@approvals_app.command("list")
def list_approvals(thread: OfThread = None) -> None:
    """List what may run without a question: its id, where it holds, and what it covers."""
    from daruma.state.calls import workspace_allowances

    of_thread = asyncio.run(_given_on(thread)) if thread else ()
    held = [(each.workspace, each) for each in workspace_allowances()]
    for where, each in [*held, *((f"thread {thread}", each) for each in of_thread)]:
        typer.echo(one_line(f"{each.id}  {where}  {each.text}", 1000))


@approvals_app.command()
def revoke(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id that the list shows.")],
    thread: OfThread = None,
) -> None:
    """Take it back: from now on such calls are asked about again."""
    from daruma.state.calls import revoke_allowance

    taken = asyncio.run(_given_on(thread, revoke=id_)) if thread else revoke_allowance(id_)
    if not taken:
        raise DarumaError(f"there is no approval {id_!r}: see `daruma approvals list`")


async def _given_on(thread: str, *, revoke: str = "") -> "list[Allowance]":
    """Return what holds on a thread; with ``revoke`` that one, which then does not any more."""
    from daruma.graph.build import build_graph
    from daruma.graph.storage import aopen_postgres
    from daruma.state.calls import revoked
    from daruma.tools.calls import Outputs

    async with aopen_postgres() as postgres:
        graph = build_graph(persistence=postgres)
        snapshot = await graph.aget_state({"configurable": {"thread_id": thread}})
        outputs = Outputs(postgres.checkpointer.outputs, thread)
        held = [
            each
            for each in snapshot.values.get("allowances", ())
            if await outputs.read(revoked(each.id)) is None and revoke in ("", each.id)
        ]
        for each in held if revoke else ():
            await outputs.note(revoked(each.id), "")
    return held


# --- ``daruma undo``: put the files of a thread's workspace back as they were.


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
    from daruma.graph.command_line._thread_view import thread_view
    from daruma.graph.command_line._undo import UndoTalk

    if keep and overwrite:
        raise typer.BadParameter("give one of --keep and --overwrite")
    paper = paper_of(stderr=json)
    asks = not json and paper.terminal and sys.stdin is not None and sys.stdin.isatty()
    talk = UndoTalk(paper, yes=yes, json=json, read=input if asks else None)
    if names:
        talk.tell(in_storage(lambda postgres: thread_view(postgres, thread)))
        return
    conflicts: Conflicts = "keep" if keep else "overwrite" if overwrite else "refuse"
    raise typer.Exit(_put_back(thread, to, conflicts, talk))


def _put_back(thread: str, to: str | None, conflicts: "Conflicts", talk: "UndoTalk") -> int:
    """Put files back while no run is at work there, from what is shown of it to the end."""
    from langchain_core.runnables import RunnableConfig

    from daruma.graph.build import build_graph
    from daruma.graph.history import place_of
    from daruma.graph.storage import open_postgres, thread_held
    from daruma.graph.sync import run
    from daruma.state.settings import Settings
    from daruma.tools.files import workspace_locked

    config = RunnableConfig(configurable={"thread_id": thread})
    with open_postgres() as postgres:
        graph = build_graph(settings=Settings(), persistence=postgres)
        if graph.get_state(config).created_at is None:
            raise run(no_such(postgres, thread), loop=postgres.checkpointer.loop)
        with thread_held(postgres.checkpointer, thread):
            place = place_of(graph.get_state(config), to)
            with workspace_locked(place.workspace):
                return talk.hold(place, conflicts, to)
