"""``daruma run``, ``chat``, ``resume``, ``answer``, ``tell``, ``demo`` and ``worker``."""

import json as json_format
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from daruma.graph.command_line._messages import one_line
from daruma.graph.command_line._options import (
    COMMANDS,
    AsJson,
    Model,
    Submit,
    ThreadName,
    Yes,
    checked_thread_name,
    in_storage,
    new_thread_name,
    no_such,
)
from daruma.state.errors import DarumaError
from daruma.state.mode import MODES

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from daruma.graph.command_line._session import Go
    from daruma.graph.storage import Postgres


# --- ``daruma run``, ``chat`` and ``resume``: a new task, several, and going on with one.

_LONGEST_PATH = 1000
"""Characters: systems complain of longer ones."""


Folder = Annotated[
    str | None,
    typer.Option(metavar="DIR", help="Folder to work in; without one there are no file tools."),
]


def run(  # noqa: PLR0913  # each is an option of the command
    goal: Annotated[str, typer.Argument(metavar="GOAL", help="What is to be done, in words.")],
    *,
    workspace: Folder = None,
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE", help=f"{', '.join(MODES)}; else by @plan or @chat, or the settings'."
        ),
    ] = None,
    model: Model = None,
    thread: Annotated[
        str | None, typer.Option(metavar="THREAD", help="Name of the thread; else a new one.")
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON schema that the answer is to fit; it is printed."),
    ] = None,
    rubric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|TEXT", help="What a judge holds the work against; may be repeated."
        ),
    ] = None,
    submit: Submit = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Run a task on a thread. Everything it does is kept: it can be stopped and resumed."""
    from daruma.graph.command_line._session import Go, Session, talk_of

    if not goal.strip():
        raise typer.BadParameter("say what is to be done", param_hint="GOAL")
    name = new_thread_name() if thread is None else checked_thread_name(thread)
    given: dict[str, Any] = {"messages": [("user", goal)], "mode": mode, "workspace": workspace}
    if rubric:
        given["rubric"] = _rubric_in(rubric)
    if schema and submit:
        raise typer.BadParameter("a worker knows no schema: leave out --submit")
    form = _schema_in(schema) if schema else None
    session = Session(name, model, Path.cwd(), workspace, response_format=form)
    talk = talk_of(submit=submit, yes=yes, json=json)
    raise typer.Exit(talk.hold(session, lambda _: Go(given)))


def _schema_in(path: str) -> dict[str, Any]:
    """Read the schema that answers are to fit (FA-10). Raises a usage error for what is none."""
    from json import loads

    from daruma.tools.calls import ResponseFormat

    try:
        if (file := Path(path)).exists() and not file.is_file():
            raise ValueError("is no file")  # a pipe or a device may have no end
        return ResponseFormat.of(loads(file.read_text(encoding="utf-8"))).schema
    except (OSError, ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--schema") from None


def _rubric_in(given: Sequence[str]) -> list[str]:
    """Read the criteria of files, and those that are told in words (VE-11)."""
    from daruma.state.verification import read_rubric

    found: list[str] = []
    for each in given:
        try:
            file = len(each) <= _LONGEST_PATH and Path(each).is_file()
            text = Path(each).read_text(encoding="utf-8") if file else each
            found += read_rubric(text)
            read_rubric(found)
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"{each[:100]}: {error}", param_hint="--rubric") from None
    return found


def chat(
    *,
    workspace: Folder = None,
    mode: Annotated[
        str | None, typer.Option(metavar="MODE", help=f"Of each task: {', '.join(MODES)}.")
    ] = None,
    model: Model = None,
    thread: Annotated[
        str | None, typer.Option(metavar="THREAD", help="Thread to go on with; else a new one.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Work on one thread in a talk: each line is a task; while it works, a line is told to it."""
    from daruma.graph.command_line._session import Session

    try:
        from daruma.graph.command_line._chat import Chat
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "prompt_toolkit":
            raise
        raise DarumaError("chat needs a package: pip install 'daruma-agent[chat]'") from error
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise DarumaError("a chat needs a terminal to type on: without one, use `daruma run GOAL`")
    if workspace is not None and not Path(workspace).is_dir():
        raise typer.BadParameter(f"{workspace!r} is not a folder", param_hint="--workspace")
    known = next((each for each in MODES if each == mode), None)
    if mode and not known:
        raise typer.BadParameter(f"{mode!r} is none of {', '.join(MODES)}", param_hint="--mode")
    name = new_thread_name() if thread is None else checked_thread_name(thread)
    raise typer.Exit(Chat(Session(name, model, workspace=workspace), known, yes).hold())


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
    from daruma.graph.command_line._session import Session, talk_of, unfinished

    talk = talk_of(submit=submit, yes=yes, json=json)
    raise typer.Exit(talk.hold(Session(thread, model=model, start=start), unfinished))


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
    from daruma.graph.command_line._session import Conversation, Go, Session

    talk, again = Conversation(yes=yes, json=json), Go(None, reopen=True, call=call)
    raise typer.Exit(talk.hold(Session(thread, model=model), lambda _: again))


# --- ``daruma answer``: reply to what a thread asks, and go on.

_BARE = ("--approve", "--deny")
_ALL = "*"

Ids = list[str]


class BareDecisions(TyperCommand):
    """A command whose ``--approve`` and ``--deny`` may stand without an id: all that is open."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_all(args))


def with_all(args: Sequence[str]) -> list[str]:
    """Give ``--approve`` and ``--deny`` the value ``*`` where none follows."""
    followed = zip_longest(args, args[1:], fillvalue="-")
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
        str | None, typer.Option(metavar="TEXT", help="An answer, or what to do instead.")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Which question is answered, where several are open."),
    ] = None,
    always: Annotated[
        Literal["thread", "workspace"] | None,
        typer.Option(help="Let what is approved also run from now on, without a question."),
    ] = None,
    pattern: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            help="What --always covers beyond exactly this call: 'pytest *', 'amount=*'.",
        ),
    ] = "",
    model: Model = None,
    submit: Submit = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Answer what a thread waits for, and go on with it. `daruma show THREAD` says what that is.

    On a terminal, without an answer among the options, each question is asked there.
    """
    from langgraph.types import Command

    from daruma.graph.command_line._replies import Given
    from daruma.graph.command_line._session import Conversation, Go, Session, talk_of

    given = Given(
        *(confirm, reject, edit, approve or (), deny or (), reason, text, args, to),
        always=always,
        pattern=pattern,
    )
    talk = talk_of(submit=submit, yes=yes, json=json)
    if given == Given() and isinstance(talk, Conversation) and talk.asks:
        raise typer.Exit(talk.hold(Session(thread, model=model), lambda _: None))
    given.check()

    def replying(snapshot: "StateSnapshot") -> "Go":
        return Go(Command(resume=given.replies(thread, snapshot.interrupts)))

    raise typer.Exit(talk.hold(Session(thread, model=model), replying))


# --- ``daruma tell``: saying something to a task that is at work, in whichever process.


def tell(
    thread: ThreadName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say.")],
    *,
    stop: Annotated[
        bool, typer.Option("--stop", help="Have it stand still before its next request, and ask.")
    ] = False,
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What takes the place of its goal.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Say something to a task that is at work: the model's next request has it."""
    from daruma.graph.requests import NoSuchThread, send
    from daruma.graph.timeline import read_snapshot

    async def send_to(postgres: "Postgres") -> str:
        saver = postgres.checkpointer
        snapshot = await read_snapshot(saver, thread)
        try:
            return await send(saver, thread, snapshot, text, stop=stop, goal=goal)
        except NoSuchThread:
            raise await no_such(postgres, thread) from None

    id_ = in_storage(send_to)
    stands, told = "it stands still before its next request, and asks", "its next request has it"
    said = f"sent: {stands if stop else told}"
    typer.echo(json_format.dumps({"thread": thread, "id": id_}) if json else said)


# --- ``daruma demo``: a shipped scenario on a real repository, without a key or a server.


def demo(
    scenario: Annotated[str, typer.Argument(metavar="[SCENARIO]", help="Which one.")] = "fix",
    *,
    names: Annotated[bool, typer.Option("--list", help="Say which scenarios there are.")] = False,
    json: AsJson = False,
) -> None:
    """See Daruma at work: real files, real tests, a real database; only the model is scripted."""
    from daruma.graph.scenario import prepare, scenario_named, scenarios

    if names:
        for each in scenarios():
            typer.echo(f"{each.name:<10} {each.title}")
        raise typer.Exit
    chosen = scenario_named(scenario)
    repository = prepare(chosen)

    from daruma.graph.command_line._demo import ASIDES, beginning, ending, reviewer
    from daruma.graph.command_line._session import Conversation, Go, Session

    talk = Conversation(json=json, asides=ASIDES)
    talk.automatic = reviewer(talk.paper)
    session = Session(f"demo-{new_thread_name()}", model=chosen.model, folder=repository)
    talk.paper.put(*beginning(chosen, repository))
    try:
        code = talk.hold(session, lambda _: Go(chosen.request(repository)))
    except DarumaError:
        if not session.reached:  # nothing was done there
            rmtree(repository.parent, ignore_errors=True)
        raise
    talk.paper.put(*ending(session.thread, chosen, code))
    raise typer.Exit(code)


# --- ``daruma worker``: running what was submitted with ``--submit``, here or on another machine.


def worker(
    *,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many threads to run at once.")
    ] = 1,
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="How long what runs may go on after Ctrl-C."),
    ] = 10.0,
    once: Annotated[
        bool, typer.Option("--once", help="Leave when nothing is left to do now.")
    ] = False,
) -> None:
    """Run the threads that were submitted, until Ctrl-C: what runs then goes back into the queue.

    Any number of workers, on any machines with the same folders, share the work.
    """
    from daruma.graph.sync import Cancelled, run_interruptible

    handler = logging.StreamHandler()
    handler.setFormatter(_Lines("%(asctime)s %(message)s", "%H:%M:%S"))
    log = logging.getLogger("daruma.worker")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        run_interruptible(_serve(concurrency, grace, once=once))
    except Cancelled:
        typer.echo("stopped")


class _Lines(logging.Formatter):
    """A record is one line, and nothing in it is obeyed by a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record), 1000)


async def _serve(concurrency: int, grace: float, *, once: bool) -> None:
    from daruma.graph.command_line._session import graphs_for
    from daruma.graph.storage import aopen_postgres
    from daruma.graph.workers import Pace, Tasks, reader_on, serve

    async with aopen_postgres() as postgres:
        database = postgres.checkpointer.database
        reader, pace = reader_on(postgres), Pace(grace=grace)
        learner = graphs_for(postgres, learning=True)
        tasks = Tasks(database, graphs_for(postgres), reader, COMMANDS, pace, learner)
        await serve(tasks, concurrency=concurrency, wait=not once)


# --- ``daruma mcp`` and ``daruma acp``: standard output is the protocol's, and nothing else's.


def mcp(
    *,
    workspace: Annotated[
        str, typer.Option(metavar="DIR", help="Folder that tasks work in; its settings hold.")
    ] = ".",
    model: Model = None,
) -> None:
    """Serve MCP on standard input and output: tools that run tasks in one folder."""
    from daruma.graph.protocols import serve_mcp

    folder = Path(workspace).absolute()
    if not folder.is_dir():
        raise typer.BadParameter(f"{workspace!r} is not a folder", param_hint="--workspace")
    _serve_clients(lambda threads: serve_mcp(threads, str(folder)), model, person=False)


def acp(*, model: Model = None) -> None:
    """Serve the Agent Client Protocol on standard input and output, for editors."""
    from daruma.graph.protocols import serve_acp

    try:
        sys.stdin.fileno()
    except (AttributeError, OSError, ValueError):
        raise DarumaError(
            "standard input is closed: an editor has to be at its other end"
        ) from None
    _serve_clients(serve_acp, model, person=True)


def _serve_clients(serve: Any, model: str | None, *, person: bool) -> None:
    from daruma.graph.command_line._session import serve_clients
    from daruma.graph.sync import Cancelled, run_interruptible

    with suppress(Cancelled):
        run_interruptible(serve_clients(serve, model, person=person))
