"""What a node works with beside the state, what it offers, and if its budget is spent (BU-04)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langgraph.store.base import BaseStore

from daruma.state import budget
from daruma.state.budget import record_step
from daruma.state.channels import State, Update
from daruma.state.events import BudgetSpent, Event, MessageReceived, unheard
from daruma.state.messages import TODO, approved_definitions
from daruma.state.mode import KEEP_WORKING
from daruma.state.result import Structured, TaskResult
from daruma.state.settings import Settings
from daruma.state.spending import is_stopped, overrun
from daruma.state.steering import NoSteering, Steering, can_be_steered, deliver, was_told
from daruma.state.steps import ContextUsage, Overrun, Paying, Step, StepKind
from daruma.state.task import Scope, Task
from daruma.state.usage import Failover, Role, Usage
from daruma.tools.calls import (
    ExactCalls,
    Journal,
    McpServers,
    NoJournal,
    Outputs,
    Registry,
    ResponseFormat,
    Surroundings,
    Tool,
    VisibleTools,
    WorkspaceTurns,
)
from daruma.tools.files import EditHistory, Workspace, edit_folder
from daruma.tools.hooks import NodeHooks
from daruma.tools.model_requests import ESTIMATE, Tokens
from daruma.tools.planning import REVISE_PLAN
from daruma.tools.reports import Report
from daruma.tools.sandbox import Sandbox
from daruma.tools.snapshots import Snapshots, Store, store_of
from daruma.tools.threads import to_thread

# --- What a node works with beside the state: the live things of one run.


@dataclass(frozen=True)
class Answer:
    """A model's answer, what it cost, and what it took if the first request did not bring it.

    ``counted`` is our own count of the request's tokens, 0 where nobody counted.
    """

    message: AIMessage
    usage: Usage
    failover: Failover | None = None
    counted: int = 0


@dataclass(frozen=True)
class Sampling:
    """How an answer is asked for that only the machine reads: in one piece, unwatched.

    A model that can is held to the JSON ``schema``.
    """

    temperature: float
    max_tokens: int | None = None
    schema: dict[str, Any] | None = None


EXACT = Sampling(temperature=0)
"""Asks for the likeliest answer."""


class Ask(Protocol):
    """Asks the model of a role. Raises :class:`daruma.state.failure.ModelFailed`."""

    async def __call__(
        self,
        node: str,
        messages: Sequence[BaseMessage],
        *,
        call: int,
        role: Role = "main",
        tools: Sequence[Tool] = (),
        sampling: Sampling | None = None,
        emit: Callable[[Event], None],
    ) -> Answer:
        """Ask for one answer; ``call`` counts the thread's calls from ``node``, by its steps."""


class CarryOut(Protocol):
    """Runs the machine once more, from a state that has one phase to do, to its end (PL-06)."""

    async def __call__(self, state: State, settings: Settings, /) -> State:
        """Return the state that it ended in."""


async def nobody(state: State, settings: Settings, /) -> State:  # noqa: ARG001 - a CarryOut
    """Carry out nothing: there is no team."""
    raise LookupError("there is no team to carry this out")


HandOver = Callable[[State, TaskResult], None]
"""Hands an ended task to evolution: at once, and without ever raising (EV-01)."""


def not_handed_over(state: State, result: TaskResult) -> None:
    """Hand nothing over: nobody learns."""


def unmeasured(state: State, context: "Context", /) -> ContextUsage | None:  # noqa: ARG001 - a Measure
    """Count nothing: there is no request."""
    return None


@dataclass(frozen=True)
class Context:
    """The live things of one run: never in the state, made when the graph is built.

    ``open_sandbox`` opens what every command runs in; a task without commands never calls it. It
    raises :class:`~daruma.tools.sandbox.SandboxUnavailable`. ``tokens`` counts what the
    main
    model reads, ``own_auxiliary`` says that the auxiliary model is another one, ``can_ask``
    that a question to a person can be kept until it is answered, ``measure`` says what a request
    is spent on. ``files_id`` is another name than
    the thread's for what is kept of its files. ``namespace`` tells the runs of a thread apart that
    other graphs have made it for. ``response_format`` is the form that answers are
    to have, ``hooks`` are asked about what the node does, ``steering`` is what people say
    meanwhile, ``looked_at`` what runs on the beginnings of tasks said (VE-09).
    """

    settings: Settings
    ask: Ask
    tools: Registry
    open_sandbox: Callable[[], Awaitable[Sandbox]]
    thread_id: str = "local"
    files_id: str = ""
    namespace: str = ""
    emit: Callable[[Event], None] = unheard
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    hand_over: HandOver = not_handed_over
    measure: Callable[[State, "Context"], ContextUsage | None] = unmeasured
    carry_out: CarryOut = nobody
    exact_calls: ExactCalls = field(default_factory=ExactCalls)
    journal: Journal = field(default_factory=NoJournal)
    turns: WorkspaceTurns = field(default_factory=WorkspaceTurns)
    servers: McpServers | None = None
    outputs: Outputs = field(default_factory=Outputs)
    store: BaseStore | None = None
    tokens: Tokens = ESTIMATE
    own_auxiliary: bool = False
    hooks: NodeHooks = field(default_factory=NodeHooks)
    can_ask: bool = True
    response_format: ResponseFormat | None = None
    steering: Steering = field(default_factory=NoSteering)
    looked_at: dict[tuple[object, ...], Report] = field(default_factory=dict)

    def local_now(self) -> datetime:
        """Return the time in the zone of the settings, in the machine's own where none is set."""
        return local_time(self.now(), self.settings.tools.time_zone)

    def snapshots(self, workspace: str | None) -> Snapshots | None:
        """Return the snapshots of a workspace; None where there is none, or settings want none."""
        settings = self.settings.rollback
        if workspace is None or not settings.snapshots:
            return None
        store = Store(store_of(Path(workspace)))
        return Snapshots(Path(workspace), self.files_of, store, exclude=settings.exclude)

    def form_of(self, wanted: Structured) -> ResponseFormat:
        """Return the form that a task asked for: another process may know its schema alone."""
        own = self.response_format
        known = own is not None and own.asked.parameters == wanted.schema
        return own if own and known else ResponseFormat.of(wanted.schema)

    @property
    def files_of(self) -> str:
        """The name that the thread's snapshots, edits and worktrees are kept under."""
        return self.files_id or self.thread_id

    async def surroundings(
        self,
        workspace: str | None,
        *,
        task: Task | None = None,
        call_id: str = "",
        timeout: float = 120.0,
    ) -> Surroundings:
        """Open a workspace for tools and commands. Raises ``ToolError`` if it is not there."""
        opened, history = None, None
        if workspace is not None:
            opened = await to_thread(Workspace, Path(workspace))
            history = EditHistory(edit_folder(workspace, self.files_of))
        return Surroundings(
            workspace=opened,
            history=history,
            timeout=timeout,
            open_sandbox=self.open_sandbox,
            emit=self.emit,
            outputs=self.outputs,
            store=self.store,
            settings=self.settings,
            thread_id=self.thread_id,
            task_id=task.id if task else "",
            call_id=call_id,
            expert=(task.expert or "") if task else "",
            memory_owner=task.memory_owner if task else Surroundings.memory_owner,
            now=self.now,
        )


# --- The record of a step: from when it began, with how long it took.


class RecordStep(Protocol):
    """Ends a step: returns the update of ``steps``, with what ``answer`` cost."""

    def __call__(self, answer: Answer | None = None, **details: Any) -> list[Step]:
        """Record the step with its details."""


def begin_step(state: State, kind: StepKind, context: Context) -> RecordStep:
    """Return what records the step that begins now, once it has ended."""
    at = context.now()

    def record(answer: Answer | None = None, **details: Any) -> list[Step]:
        measured: dict[str, Any] = {"seconds": context.now() - at}
        if answer is not None:
            measured |= {"usage": answer.usage, "counted": answer.counted}
        return record_step(state, kind, at=at, **measured | details)

    return record


# --- The time zone of the machine, with its rules for every date and not just today's offset.


class MachineZone(tzinfo):
    """What the operating system says of a local time."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return (at or datetime.now(self)).replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, at: datetime | None) -> timedelta | None:  # noqa: ARG002 - a tzinfo
        return None

    def tzname(self, at: datetime | None) -> str | None:
        return (at or datetime.now(self)).replace(tzinfo=None).astimezone().tzname()


def local_time(seconds: float, zone: str | None) -> datetime:
    """Return a Unix time in a zone by its IANA name, in the machine's own where that is None."""
    if zone is None:
        return datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=MachineZone())
    return datetime.fromtimestamp(seconds, ZoneInfo(zone))


# --- What a task's model is offered, by the settings and the tools of its run.


def visible_tools(
    task: Task | None,
    context: Context,
    without: Collection[str] = frozenset(),
    *,
    reading: bool = True,
    messages: Sequence[AnyMessage] = (),
) -> VisibleTools:
    """Return what a task is offered, ``without`` some of it: nothing in direct chat.

    ``reading`` says that a result was left out in part: with the tools that bring results comes the
    one that reads on in them, whatever the profile. ``messages`` are the thread's, where calls are
    decided on.
    """
    settings = context.settings.tools
    if task is None or task.mode == "direct_chat":
        return VisibleTools(settings=settings)
    planned = task.mode in KEEP_WORKING  # react without a workspace is a talk with tools beside
    planning = {TODO} if planned or task.workspace is not None else set()
    planning |= {REVISE_PLAN} if planned and task.limits.replan else set()
    shown = context.tools.shown(
        context.settings,
        frozenset(without),
        workspace=task.workspace is not None,
        store=context.store is not None,
        reading=reading,
        planning=frozenset(planning),
    )
    now = context.local_now() if shown.dated else None
    unconfined = context.settings.sandbox.require == "none"
    served = any(tool.origin == "mcp" for tool in shown.tools)
    ran_as = approved_definitions(messages) if served else {}
    return VisibleTools(
        shown.tools,
        shown.hidden,
        settings,
        now,
        unconfined=unconfined,
        reads_first=task.workspace is not None,
        ran_as=ran_as,
    )


# --- Looking at the budget before anything is spent of it (BU-04).


def budget_exceeded(state: State, node: Paying, context: Context) -> Update | None:
    """Return the update of a node that can not go on, as its budget is spent; None if it can."""
    return _told(overrun(state, node), context)


def out_of_steps(state: State, node: Literal["main", "verify"], context: Context) -> Update | None:
    """Return the update that has a person asked, as steps ran out; None where nobody is (RE-03a).

    Only a terminal, Studio or ``fallback_chain.recovery.ask`` has one asked, and not again after
    they said to stop.
    """
    wanted = state.task is not None and state.task.limits.ask and context.can_ask
    if not wanted or is_stopped(state) or is_stopped(state, steps=True):
        return None
    spent = budget.thinks(state) if node == "main" else budget.in_phase(state, "verify")
    scope: Scope = "phase" if state.plan else "task"
    over = Overrun(node=node, scope=scope, measure="steps", spent=spent, limit=spent)
    return _told(over, context)


def _told(over: Overrun | None, context: Context) -> Update | None:
    if over is None:
        return None
    context.emit(
        BudgetSpent(
            node=over.node,
            scope=over.scope,
            measure=over.measure,
            spent=over.spent,
            limit=over.limit,
        )
    )
    return {"overrun": over}


# --- What a person says to a task at work (FA-14).


async def receive(state: State, context: Context) -> Update | None:
    """Return the update that tells what people sent meanwhile; None where nothing waits (FA-14).

    What a history holds is told no more: a run may have been killed just after that was stored.
    """
    if not context.steering.waits(context.thread_id):
        return None
    found = await context.steering.read(context.thread_id)
    known = [each.id for each in found if was_told(state.messages, each.id)]
    context.steering.forget(context.thread_id, known)
    sent = [each for each in found if each.id not in known]
    for each in sent:
        context.emit(
            MessageReceived(
                id=each.id, text=each.text, stop=each.stop, goal=each.goal, sent_at=each.at
            )
        )
    return deliver(state, sent) if sent else None


async def receive_before_end(state: State, context: Context) -> Update | None:
    """Do the same for work that would end here: it goes on, if it can ask the model once more.

    What was verified before counts no more. What can not be told waits for the thread's next task.
    """
    update = await receive(state, context) if can_be_steered(state) else None
    return update and {**update, "verification": None}
