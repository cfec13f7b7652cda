"""One thread of the command line: run here, with a person to talk to, or left to a worker."""

import asyncio
import json as json_format
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot
from rich.console import Console

from daruma.graph.build import SHIPPED_TOOLS, build_graph
from daruma.graph.command_line._options import COMMANDS, new_thread_name, no_such
from daruma.graph.command_line._output import Paper, Pasted
from daruma.graph.command_line._progress import Progress
from daruma.graph.command_line._questions import AnswerRefused
from daruma.graph.command_line._replies import ask, yes_to
from daruma.graph.command_line._thread_view import (
    Keepsake,
    Stop,
    checks_ahead,
    print_questions,
    print_summary,
)
from daruma.graph.models import AUXILIARY, Models
from daruma.graph.requests import is_unfinished, open_questions
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres, aopen_postgres
from daruma.graph.sync import Cancelled, run_interruptible
from daruma.state.channels import refuse_misfits
from daruma.state.result import TaskResult
from daruma.state.settings import Settings
from daruma.state.steps import ContextUsage
from daruma.state.text import on_thread
from daruma.tools.calls import mcp_tools, open_mcp_tools

if TYPE_CHECKING:
    from daruma.graph.protocols import ClientThreads
    from daruma.graph.workers import GraphFactory

_SCRIPTED = "scripted:"


def usable_model(name: str | None, settings: Settings) -> str:
    """Return the model's full name, fit for another process; it and its helper can be made.

    Raises :class:`~daruma.graph.models.ModelUnavailable` before anything runs.
    """
    llm = settings.llm
    models = Models.of(llm, name or llm.model)
    models.get("main")
    models.get(AUXILIARY)
    full = models.name("main")
    if full.startswith(_SCRIPTED):
        return _SCRIPTED + str(Path(full.removeprefix(_SCRIPTED)).absolute())
    return full


# --- One thread of the command line: opened, run as far as it goes without a person, and left.

Replies = Mapping[str, Any]
"""Replies by the id of the interrupt that they answer."""


@dataclass(frozen=True)
class Go:
    """What the graph is to be run with; None goes on where it stopped.

    ``reopen`` sets the thread back to where it failed first, or where the call of that id did.
    """

    given: Any
    reopen: bool = False
    call: str | None = None


def refuse_foreign_calls(thread: str, snapshot: StateSnapshot, going: Go | None) -> None:
    """Raise for a reply where an open call is of a program's own tool, which is not here.

    It would be taken for good, and the call could not be made.
    """
    known = {tool.name for tool in SHIPPED_TOOLS}
    replied = going is not None and isinstance(going.given, Command)
    for call in snapshot.values.get("calls", ()) if replied else ():
        foreign = call.name not in known and not call.name.startswith("mcp__")
        if foreign and call.status in ("ready", "awaiting"):
            raise AnswerRefused(
                f"thread {thread!r} asks about {call.name!r}, a tool of the program that began it: "
                "answer there, as `daruma` does not have it"
            )


Start = Callable[[StateSnapshot], Go | None]
"""Reads a thread and says what to run; None for a thread that has nothing to run."""


def unfinished(snapshot: StateSnapshot) -> Go | None:
    """Go on with work that was interrupted; a result, or an open question, is nothing to run.

    A review whose deadline has passed is parked.
    """
    return Go(None) if is_unfinished(snapshot, time.time()) else None


@dataclass
class Session:
    """A thread, and how to run it. ``reached`` turns true once there is something to go on with.

    A new request names the ``folder`` whose settings it runs under, and its ``workspace``; without
    them, settings are those that the thread was started with. The model is ``model``, else the one
    that the thread ran with, else the settings'.
    ``start`` is an earlier checkpoint to go on from. ``response_format`` is the JSON schema that a
    new task's answer is to fit. ``person`` says that somebody is there to be asked. ``running`` is
    the graph while it runs.
    """

    thread: str
    model: str | None = None
    folder: Path | None = None
    workspace: str | None = None
    reached: bool = False
    person: bool = False
    start: str | None = None
    response_format: dict[str, Any] | None = None
    running: Machine | None = None

    async def advance(
        self,
        start: Start,
        progress: Progress,
        automatic: Callable[[Stop], Replies],
        tell: Callable[[Stop], None],
    ) -> Stop:
        """Run until the task ends or a question is open that ``automatic`` has no reply to.

        Storage is open only meanwhile: a person's wait costs nothing. Before it is closed,
        what is learned of the task is waited for; ``tell`` is called before that (EV-01).
        """
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(aopen_postgres())
            kept = await self.keepsake(postgres)
            settings, model = kept.settings(), self.model or kept.model
            settings = _as_the_user(settings.with_a_person() if self.person else settings)
            # Reading needs no model: a thread tells its result where no key is set.
            graph = build_graph(settings=Settings(), persistence=postgres)
            snapshot = await graph.aget_state(self._config())
            going, replies = start(snapshot), postgres.checkpointer.replies
            if not going and await replies.find(self.thread, open_questions(snapshot)):
                going = Go(None)  # with a reply that was accepted before its run was killed
            going = going or await self._answered(graph, settings, automatic)
            refuse_foreign_calls(self.thread, snapshot, going)
            if going:
                kept = replace(kept, model=usable_model(model, settings))
                graph = await self._built(stack, postgres, kept, settings)
                self.running = graph
                stack.callback(setattr, self, "running", None)
            if going and going.reopen:
                config = self._config() | {"metadata": kept.metadata}
                await graph.areopen(config, call=going.call)
            while going:
                await self._stream(graph, going, kept, progress)
                going = await self._answered(graph, settings, automatic)
            stop = await self._stop(graph, settings)
            tell(stop)
            return stop

    async def keepsake(self, postgres: Postgres) -> Keepsake:
        """Return what the thread keeps; a new request has a folder of its own."""
        sound = postgres.checkpointer.expecting(refuse_misfits)
        found = await sound.aget_tuple(self._config())
        self.reached = found is not None
        if found is None and not self.folder:
            raise await no_such(postgres, self.thread, self.start)
        kept = Keepsake.of(found.metadata if found else {})
        return replace(kept, folder=str(self.folder)) if self.folder else kept

    async def steer(self, text: str, **how: Any) -> str:
        """Tell the task that is at work, or was interrupted; return the message's id.

        Raises :class:`~daruma.state.errors.DarumaError` where there is none.
        """
        async with AsyncExitStack() as stack:
            graph = self.running
            if graph is None:
                postgres = await stack.enter_async_context(aopen_postgres())
                graph = build_graph(settings=Settings(), persistence=postgres)
            return await graph.asteer(self._config(), text, **how)

    async def context_cost(self) -> ContextUsage | None:
        """Return what the window is spent on as the thread stands, at work or not (CX-08)."""
        async with AsyncExitStack() as stack:
            graph = self.running
            if graph is None:
                postgres = await stack.enter_async_context(aopen_postgres())
                kept = await self.keepsake(postgres)
                kept = replace(kept, model=self.model or kept.model)
                graph = await self._built(stack, postgres, kept, kept.settings())
            return await graph.acontext_cost(self._config())

    async def _built(
        self, stack: AsyncExitStack, postgres: Postgres, kept: Keepsake, settings: Settings
    ) -> Machine:
        """Return the graph that runs the thread; its servers of tools end with the stack."""
        here = Path(self.workspace or kept.folder)
        servers = open_mcp_tools(settings.tools.mcp_servers, here)
        tools = await stack.enter_async_context(servers)
        store, form = postgres.store_for(settings.llm), self.response_format
        return build_graph(kept.model, tools, settings, postgres, store=store, response_format=form)

    async def _stream(self, graph: Machine, going: Go, kept: Keepsake, progress: Progress) -> None:
        config = self._config() | {"metadata": kept.metadata}
        parts: AsyncIterator[Any] = graph.astream(
            going.given, config, stream_mode=["updates", "custom", "values"]
        )
        async for mode, part in parts:
            self.reached, self.start = True, None
            progress.begin(self.thread, kept.model or "")
            progress.see(mode, part)

    async def _answered(
        self, graph: Machine, settings: Settings, automatic: Callable[[Stop], Replies]
    ) -> Go | None:
        replies = automatic(await self._stop(graph, settings))
        return Go(Command(resume=dict(replies))) if replies else None

    async def _stop(self, graph: Machine, settings: Settings) -> Stop:
        snapshot = await graph.aget_state(self._config())
        stop = Stop.at(self.thread, snapshot)
        return replace(stop, checks=await checks_ahead(snapshot, settings))

    def _config(self) -> RunnableConfig:
        point = {"checkpoint_id": self.start} if self.start else {}
        return RunnableConfig(configurable={"thread_id": self.thread, **point})


def _as_the_user(settings: Settings) -> Settings:
    """Let a yes reach as far as the workspace, unless the settings say how far (TL-25)."""
    tools = settings.tools
    if "always" in tools.model_fields_set:
        return settings
    return settings.model_copy(update={"tools": tools.model_copy(update={"always": "workspace"})})


# --- A command's whole talk with a person: run, ask, run on, and say how it ended.

WAITING = 3
_EXIT_CODES = {"completed": 0, "parked": WAITING, "cancelled": 130}


def exit_code(stop: Stop) -> int:
    """Return 0 for a completed task, 1 for one that ended otherwise, 3 while a person is needed."""
    if stop.result is None:
        return WAITING if stop.questions else 1
    return _EXIT_CODES.get(stop.result.status, 1)


@dataclass
class Conversation:
    """How a command talks: ``yes`` agrees by itself, ``json`` leaves standard output to programs.

    ``automatic`` answers open questions before anybody is asked; ``asides`` are told as events
    happen.
    """

    yes: bool = False
    json: bool = False
    automatic: Callable[[Stop], Replies] | None = None
    asides: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.paper = Paper(Console(stderr=self.json, highlight=False))
        self._plan_known = self._asked = False
        self._told: TaskResult | None = None
        self._ended: Stop | None = None

    @property
    def ended(self) -> bool:
        """Whether the answer is told, and only what is learned of it is waited for."""
        return self._ended is not None

    @property
    def asks(self) -> bool:
        """Whether a person can be asked: somebody who types, and who sees what is said."""
        typing = sys.stdin is not None and sys.stdin.isatty()
        return typing and not self.json and self.paper.console.is_terminal

    def hold(self, session: Session, start: Start) -> int:
        """Run a thread until it ends or waits, and return the exit code."""
        try:
            stop = self._until_waiting(session, start)
        except (Cancelled, KeyboardInterrupt) as end:
            if self._ended:  # only what is learned of it was called off
                return exit_code(self._ended)
            self.tell_cancelled(session)
            return end.exit_code if isinstance(end, Cancelled) else 130
        if not self._ended:
            self._tell(stop)
        return exit_code(stop)

    def progress(self) -> Progress:
        """Return what shows a run while it goes on."""
        return Progress(self.paper, self.asides)

    def _until_waiting(self, session: Session, start: Start) -> Stop:
        progress = self.progress()
        automatic = self.automatic or (lambda stop: yes_to(stop.questions) if self.yes else {})
        session.person = self.asks and self.automatic is None
        while True:
            with progress:
                advance = session.advance(start, progress, automatic, self._end)
                stop = run_interruptible(progress.over(advance))
            self._plan_known |= progress.plan_shown
            replies = self._ask(stop)
            if not replies:
                return stop
            start = _going(replies)

    def _end(self, stop: Stop) -> None:
        """Tell an answer at once; what is learned of it comes after (EV-01)."""
        if stop.result and not stop.questions:
            self._ended = stop
            self._tell(stop)

    def _ask(self, stop: Stop) -> Replies:
        self._asked = self.asks
        if not self._asked:
            return {}
        if stop.questions:
            self._sum_up(stop)  # of a thread that is parked or held
        return ask(stop, self.paper, known=self._plan_known)

    def _tell(self, stop: Stop) -> None:
        if self.json:
            asked = [{"id": each.id, "value": each.value} for each in stop.questions]
            waiting = {"interrupts": asked} if asked or not stop.result else {}
            ended = stop.result.to_dict() if stop.result else {}
            typer.echo(json_format.dumps({"thread": stop.thread, **ended, **waiting}))
        self._sum_up(stop)
        if stop.questions:
            print_questions(self.paper, stop, known=self._plan_known, asked=self._asked)
        elif not stop.result:
            self.paper.put(
                Pasted("bad", f"unfinished: go on with {on_thread('resume', stop.thread)}")
            )

    def _sum_up(self, stop: Stop) -> None:
        if stop.result and stop.result is not self._told:
            print_summary(self.paper, stop.thread, stop.result, stop.savepoints)
        self._told = stop.result

    def tell_cancelled(self, session: Session) -> None:
        """Say that a run was cancelled, and how to go on with it."""
        again = f"go on with {on_thread('resume', session.thread)}" if session.reached else ""
        self.paper.put(Pasted("head", "Cancelled", again or "nothing had begun"))


def _going(replies: Replies) -> Start:
    return lambda _: Go(Command(resume=dict(replies)))


# --- Leaving a thread to a worker: what would be run here is queued, and its name is printed.


@dataclass(frozen=True)
class Submitting:
    """How a command talks that leaves the work to others."""

    json: bool

    def hold(self, session: Session, start: Start) -> int:
        """Queue what is to be run, and say so; return the exit code."""
        status = "queued" if asyncio.run(_queue(session, start)) else "nothing to run"
        if self.json:
            typer.echo(json_format.dumps({"thread": session.thread, "status": status}))
        else:
            typer.echo(session.thread)
            typer.echo(f"{status}: see {on_thread('show', session.thread, '--follow')}", err=True)
        return 0


async def _queue(session: Session, start: Start) -> bool:
    from daruma.graph.workers import asubmit, reader_on  # the extra ``worker``

    async with aopen_postgres() as postgres:
        kept = await session.keepsake(postgres)
        kept = replace(kept, model=usable_model(session.model or kept.model, kept.settings()))
        config = RunnableConfig(configurable={"thread_id": session.thread})
        snapshot = await reader_on(postgres).aget_state(config)
        going = start(snapshot)
        refuse_foreign_calls(session.thread, snapshot, going)
        if going:
            how: Any = {"queue": COMMANDS, "metadata": kept.metadata}
            await asubmit(postgres, going.given, session.thread, **how)
        return going is not None


def talk_of(*, submit: bool, yes: bool, json: bool) -> Conversation | Submitting:
    """Return how to talk. Raises a usage error for ``--submit`` with ``--yes``."""
    if not submit:
        return Conversation(yes=yes, json=json)
    if yes:
        raise typer.BadParameter("a worker agrees to nothing: answer with `daruma answer`")
    return Submitting(json)


def graphs_for(
    postgres: Postgres, *, learning: bool = False, person: bool = False
) -> "GraphFactory":
    """Return what makes the graph that a command named, under the settings of its folder.

    One that is ``learning`` only learns of ended tasks: no server of tools is started for it. A
    ``person`` is there to be asked.
    """

    async def make(metadata: Mapping[str, Any], workspace: str | None) -> Machine:
        kept = Keepsake.of(metadata)
        settings = kept.settings().with_a_person() if person else kept.settings()
        folder = Path(workspace or kept.folder)
        if learning:
            kept_tools = settings.tools.model_copy(update={"mcp_servers": {}})
            settings = settings.model_copy(update={"tools": kept_tools})
        tools = await mcp_tools(settings.tools.mcp_servers, folder)
        store = postgres.store_for(settings.llm)
        return build_graph(kept.model, tools, settings, postgres, store=store)

    return make


# --- Serving clients of a protocol, each thread under the settings of the folder it was begun in.


async def serve_clients(
    serve: "Callable[[ClientThreads], Awaitable[None]]", model: str | None, *, person: bool
) -> None:
    """Open the storage, and serve the threads in it until the client goes away."""
    from daruma.graph.protocols import ClientThreads

    def keep(folder: str) -> dict[str, Any]:
        settings = Keepsake(model, folder).settings()
        return Keepsake(usable_model(model, settings), folder).metadata

    async with aopen_postgres() as postgres:
        graph_of = graphs_for(postgres, person=person)
        await serve(ClientThreads(postgres, graph_of, keep, new_thread_name))
