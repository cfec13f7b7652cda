"""The state of the machine: what nodes may read, and what they may write."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from langchain_core.messages import AnyMessage
from typing_extensions import TypedDict

from daruma.state.calls import Allowance, ToolTask, reduce_calls
from daruma.state.conversation import Clarification, Continuity, reduce_continuity
from daruma.state.emergency import EmergencyError
from daruma.state.errors import DamagedState
from daruma.state.failure import Failure, RecoveryAction
from daruma.state.lessons import Instructions, Lessons, Recalled
from daruma.state.messages import Messages, reduce_messages
from daruma.state.mode import Mode
from daruma.state.plan import Plan, Report, reduce_reports
from daruma.state.result import Structured, TaskResult
from daruma.state.savepoint import Drifted, Savepoint, append_savepoints, reduce_drifted
from daruma.state.serializer import DeltaSnapshot
from daruma.state.steps import Compaction, Crowded, Overrun, Step, append_steps
from daruma.state.task import Task
from daruma.state.verification import Verification

# --- How LangGraph is to keep a channel, as plain data: who looks imports no LangGraph (FA-13).

EPHEMERAL: Final = "ephemeral"
"""Of a channel whose value is gone after one superstep."""


@dataclass(frozen=True)
class Delta:
    """How a channel is kept as writes, and whole copies; ``reducer`` takes many writes at once.

    ``first_copy`` is after how many writes the first copy comes, ``part`` that of what there is
    which is written between two later ones.
    """

    reducer: Callable[[Any, Sequence[Any]], Any]
    first_copy: int
    part: int = 2

    def replayed(self, copy: Any, writes: Iterable[Any]) -> Any:
        """Return what the channel holds after writes, as LangGraph tells it."""
        held, since = copy.value if isinstance(copy, DeltaSnapshot) else copy or [], list[Any]()
        for write in writes:
            if (over := _overwriting(write)) is None:
                since.append(write)
            else:
                held, since = [*over], []
        return self.reducer(held, since) if since else held


def is_overwrite(value: object) -> bool:
    """Whether a value is LangGraph's ``Overwrite``, of which there is none before its import."""
    types = sys.modules.get("langgraph.types")
    return types is not None and isinstance(value, types.Overwrite)


_OVERWRITE: Final = "__overwrite__"


def _overwriting(write: Any) -> Iterable[Any] | None:
    """Return what an ``Overwrite`` sets a channel to, also one that JSON made a dict of."""
    if is_overwrite(write):
        return write.value or ()
    if isinstance(write, dict) and {*write} == {_OVERWRITE}:
        return write[_OVERWRITE] or ()
    erased = isinstance(write, dict) and write.get("type") == _OVERWRITE and "value" in write
    return write["value"] or () if erased else None


# --- The state of the machine: what nodes may read, and what they may write.

FIRST_COPY: Final = 2500
"""Writes to a channel before the first whole copy of it: a thread of 1,250 steps."""

MessagesChannel = Annotated[list[AnyMessage], Delta(reduce_messages, FIRST_COPY)]
StepsChannel = Annotated[list[Step], Delta(append_steps, FIRST_COPY)]
SavepointsChannel = Annotated[list[Savepoint], Delta(append_savepoints, first_copy=1, part=8)]
RequestedMode = Annotated[Mode | None, EPHEMERAL]
RequestedWorkspace = Annotated[str | None, EPHEMERAL]
RequestedRubric = Annotated[tuple[str, ...] | None, EPHEMERAL]
ContinuityChannel = Annotated[Continuity | Mapping[str, Any] | None, reduce_continuity]
Result = Annotated[TaskResult | None, EPHEMERAL]


@dataclass(frozen=True)
class State:
    """What nodes and routers read.

    ``mode``, ``workspace`` and ``rubric`` are the request's own words and are gone after intake;
    what was made of them stands in ``task``. ``failure`` is what went wrong and is not yet dealt
    with, ``origin`` what recovery is working on: the code of a task is that of the first failure
    (EM-04). ``action`` is what recovery would do about it and a person has to agree to. ``overrun``
    is the budget that is spent, until that is settled. ``drifted`` are the files that changed
    behind the thread's back, in this task. ``allowances`` are what a person has said yes to for
    calls to come on the thread. ``compaction`` says how the history is shown, ``crowded`` which
    request is too large as it stands. ``recalled`` are the memories that fitted the task,
    ``lessons`` what earlier ones have taught, ``instructions`` what the repository says.
    ``clarification`` is the last question that a turn ended with; ``continuity`` whether the
    message at hand goes on with it, or a snapshot of an older form that intake has yet to read.
    ``structured`` is the structure that the answer is to have, None where none was asked for.
    """

    messages: MessagesChannel = field(default_factory=list)
    mode: RequestedMode = None
    workspace: RequestedWorkspace = None
    rubric: RequestedRubric = None
    task: Task | None = None
    plan: Plan | None = None
    steps: StepsChannel = field(default_factory=list)
    savepoints: SavepointsChannel = field(default_factory=list)
    drifted: Annotated[Drifted | None, reduce_drifted] = None
    compaction: Compaction | None = None
    crowded: Crowded | None = None
    calls: Annotated[tuple[ToolTask, ...], reduce_calls] = ()
    allowances: tuple[Allowance, ...] = ()
    continuity: ContinuityChannel = None
    clarification: Clarification | None = None
    reports: Annotated[tuple[Report, ...], reduce_reports] = ()
    verification: Verification | None = None
    failure: Failure | None = None
    origin: Failure | None = None
    action: RecoveryAction | None = None
    overrun: Overrun | None = None
    error: EmergencyError | None = None
    recalled: Recalled | None = None
    lessons: Lessons | None = None
    instructions: Instructions | None = None
    structured: Structured | None = None
    result: Result = None

    @property
    def task_id(self) -> str:
        """The id of the task at hand; empty before intake."""
        return self.task.id if self.task else ""


class Update(TypedDict, total=False):
    """What a node returns: only what it changes."""

    messages: Messages
    task: Task | None
    plan: Plan | None
    steps: list[Step]
    savepoints: list[Savepoint]
    drifted: Drifted | None
    compaction: Compaction | None
    crowded: Crowded | None
    calls: tuple[ToolTask, ...] | ToolTask
    allowances: tuple[Allowance, ...]
    continuity: Continuity | None
    clarification: Clarification | None
    reports: tuple[Report, ...] | Report
    verification: Verification | None
    failure: Failure | None
    origin: Failure | None
    action: RecoveryAction | None
    overrun: Overrun | None
    error: EmergencyError | None
    recalled: Recalled | None
    lessons: Lessons | None
    instructions: Instructions | None
    structured: Structured | None
    result: TaskResult | None


class Input(TypedDict, total=False):
    """What a caller gives: messages, and optionally the mode and the workspace of the task.

    ``rubric`` is what a judge is to hold its work against (VE-11).
    ``continuity`` is what the application kept of the conversation, in any older form (CO-03).
    """

    messages: MessagesChannel
    mode: RequestedMode
    workspace: RequestedWorkspace
    rubric: RequestedRubric
    continuity: ContinuityChannel


class Output(TypedDict, total=False):
    """What a caller gets back; ``result`` is absent while the task waits for a person."""

    messages: MessagesChannel
    plan: Plan | None
    result: Result


# --- Which channels of the machine are replayed from what was written to them; the others are not.

_HINTS: Final = get_type_hints(State, include_extras=True)

DELTA: Final[Mapping[str, Delta]] = {
    name: each
    for name, hint in _HINTS.items()
    for each in getattr(hint, "__metadata__", ())
    if isinstance(each, Delta)
}
"""The channels that are kept as writes."""


# --- What channels make of the state, and an update of it: the same as LangGraph, at less.

Reducer = Callable[[Any, Any], Any]

_NOTHING: Final = object()


def state_of(values: Mapping[str, Any]) -> State:
    """Return the state of what channels hold: the same as ``State(**values)``, at a third of it."""
    state = object.__new__(State)
    given = vars(state)
    for name, default, factory in _fields():
        given[name] = values[name] if name in values else factory() if factory else default
    return state


@cache
def _fields() -> tuple[tuple[str, Any, Callable[[], Any] | None], ...]:
    return tuple(
        (each.name, each.default, None if each.default_factory is MISSING else each.default_factory)
        for each in fields(State)
    )


def apply_update(state: State, update: Update) -> State:
    """Return the state after a node's update: what was there for one superstep only is gone.

    Of the update's values none is an ``Overwrite``; our nodes write none.
    """
    gone, reducers = _channels()
    after = object.__new__(State)  # `replace` sets each of many fields by itself
    values = vars(after)
    values.update(vars(state))
    values.update(gone)
    for name, value in update.items():
        if name in reducers:
            values[name] = reducers[name](getattr(state, name), value)
    return after


@cache
def _channels() -> tuple[Mapping[str, None], Mapping[str, Reducer]]:
    """Return what does not outlast a superstep, and how each channel takes what is written."""
    kinds = {
        name: getattr(hint, "__metadata__", (_NOTHING,))[-1]
        for name, hint in get_type_hints(State, include_extras=True).items()
    }
    gone = {name: None for name, kind in kinds.items() if kind is EPHEMERAL}
    return gone, {name: _reducer(kind) for name, kind in kinds.items()}


def _reducer(kind: Any) -> Reducer:
    if isinstance(kind, Delta):
        return lambda known, write: kind.reducer(known, [write])
    if kind is _NOTHING or kind is EPHEMERAL:
        return lambda _, write: write
    reducer: Reducer = kind
    return reducer


# --- Whether what was stored for a channel is what the state says that it holds (DU-05).
#
# Each record validates itself as it is read; this tells a record in another's place.

Write = tuple[str, Any]
Fits = Callable[[Any], bool]


def refuse_misfits(values: Mapping[str, Any], writes: Iterable[Write] = ()) -> None:
    """Raise :class:`~daruma.state.errors.DamagedState` for a channel's value of another type.

    ``writes`` are those that wait to be applied. Channels that the state has not are let be, and so
    is what may be written to messages: whatever LangChain makes a message of.
    """
    for channel, stored in values.items():
        value = stored.value if isinstance(stored, DeltaSnapshot) else stored
        if channel in _held() and not _held()[channel](value):
            raise DamagedState(f"channel {channel!r} holds a {type(value).__name__}")
    for channel, value in writes:
        if channel in _written() and not _may_be_written(channel, value):
            raise DamagedState(f"a {type(value).__name__} was written to channel {channel!r}")


def misfit_of(values: Mapping[str, Any]) -> str:
    """Say what of values that are to be written would be found damaged; empty for nothing.

    What becomes of messages is known only once LangChain has made them.
    """
    for channel, value in values.items():
        made = channel == "messages" and not is_overwrite(value)
        if channel in _held() and not made and not _may_be_written(channel, value):
            kind = type(value.value if is_overwrite(value) else value).__name__
            return f"channel {channel!r} takes no such {kind}"
    return ""


def _may_be_written(channel: str, value: Any) -> bool:
    if is_overwrite(value):
        return value.value is None or _held()[channel](value.value)
    return (channel in _written() and _written()[channel](value)) or _held()[channel](value)


@cache
def _held() -> dict[str, Fits]:
    hints = get_type_hints(State, include_extras=True)
    return {name: fitting(hint) for name, hint in hints.items()}


@cache
def _written() -> dict[str, Fits]:
    hints = get_type_hints(Update, include_extras=True)
    return {name: fitting(hint) for name, hint in hints.items() if name != "messages"}


def fitting(hint: Any) -> Fits:
    """Return what tells whether a value is of a type; a list may stand for a tuple, as in msgpack.

    A history has thousands of values of one type, which is taken apart only once.
    """
    origin, of = get_origin(hint), get_args(hint)
    if classes := _classes(hint):
        return lambda value: isinstance(value, classes)
    if origin is Annotated:
        return fitting(of[0])
    if origin is Literal:
        return lambda value: value in of
    if origin in (Union, UnionType):
        either = [fitting(each) for each in of]
        return lambda value: any(fits(value) for fits in either)
    if origin in (list, tuple):
        of_each = fitting(of[0])
        return lambda value: isinstance(value, list | tuple) and all(map(of_each, value))
    return lambda value: isinstance(value, origin)


def _classes(hint: Any) -> tuple[type, ...]:
    """Return the classes that a type is one of; none where it is not a matter of classes alone."""
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _classes(of[0])
    if origin in (Union, UnionType):
        each = [_classes(one) for one in of]
        return tuple(chain.from_iterable(each)) if all(each) else ()
    if hint is None:
        return (NoneType,)
    return (hint,) if origin is None else ()
