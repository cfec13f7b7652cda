"""The state of the machine: what nodes may read, and what they may write."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.channels import DeltaChannel, EphemeralValue
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from daruma.state.allowances import Allowance
from daruma.state.calls import ToolTask, reduce_calls
from daruma.state.conversation import Clarification, Continuity, reduce_continuity
from daruma.state.emergency import EmergencyError
from daruma.state.errors import DamagedState
from daruma.state.failure import Failure
from daruma.state.lessons import Instructions, Lessons, Recalled
from daruma.state.messages import Messages, reduce_messages
from daruma.state.mode import Mode
from daruma.state.plan import Plan, Report, reduce_reports
from daruma.state.recovery import RecoveryAction
from daruma.state.result import Structured, TaskResult
from daruma.state.savepoint import Drifted, Savepoint, append_savepoints, reduce_drifted
from daruma.state.serializer import DeltaSnapshot
from daruma.state.steps import Compaction, Crowded, Overrun, Step, append_steps
from daruma.state.task import Task
from daruma.state.verification import Verification

# --- A delta channel whose cost grows with what is new, not with how much there is (DU-08).

V = TypeVar("V", bound=list[Any])

FEW: Final = 64
"""Writes that are not worth a whole copy when a task begins."""


class GrowingDelta(DeltaChannel[V], Generic[V]):
    """Keeps each write, and a whole copy after as many writes as half of what there is.

    LangGraph's own keeps one after every so many writes, so that those of a thread of 1,000 steps
    take several times its history. This one's take twice of it at most, however long it is. The
    first copy comes after ``snapshot_frequency`` writes: until then each step keeps what is new,
    and reading takes some 0.05 ms for each write, a third of which a copy would take, too. A task
    begins with reading: there, copies come after a quarter of what there is, so that the hundredth
    task of a thread costs little more than its first.
    """

    __slots__ = ("_least",)
    _least: int
    _part: ClassVar[int] = 2

    @property
    def snapshot_frequency(self) -> int:
        """How many writes since the last copy make LangGraph keep one."""
        kept = len(self.value) if self.is_available() else 0
        usual = max(self._least, (kept + 1) // self._part)
        return min(usual, max(FEW, kept // 4)) if kept and begins_task(self.value) else usual

    @snapshot_frequency.setter
    def snapshot_frequency(self, least: int) -> None:
        self._least = least

    def copy(self) -> Self:
        new = super().copy()
        new._least = self._least
        return new

    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = super().from_checkpoint(checkpoint)
        new._least = self._least
        return new


def begins_task(values: Sequence[object]) -> bool:
    """Whether the last of a thread's messages is a request, or the last step its task's first."""
    if isinstance(values[-1], Step):
        return len(values) > 1 and values[-1].task_id != getattr(values[-2], "task_id", None)
    return isinstance(values[-1], HumanMessage)


class RareDelta(GrowingDelta[V]):
    """The same for what is seldom written, and little: a whole copy after an eighth as many writes.

    The way back to a copy leads through all that the thread did since.
    """

    __slots__ = ()
    _part: ClassVar[int] = 8


# --- The state of the machine: what nodes may read, and what they may write.

FIRST_COPY: Final = 2500
"""Writes to a channel before the first whole copy of it: a thread of 1,250 steps."""

MessagesChannel = Annotated[
    list[AnyMessage], GrowingDelta(reduce_messages, snapshot_frequency=FIRST_COPY)
]
StepsChannel = Annotated[list[Step], GrowingDelta(append_steps, snapshot_frequency=FIRST_COPY)]
SavepointsChannel = Annotated[list[Savepoint], RareDelta(append_savepoints, snapshot_frequency=1)]
RequestedMode = Annotated[Mode | None, EphemeralValue]
RequestedWorkspace = Annotated[str | None, EphemeralValue]
RequestedRubric = Annotated[tuple[str, ...] | None, EphemeralValue]
ContinuityChannel = Annotated[Continuity | Mapping[str, Any] | None, reduce_continuity]
Result = Annotated[TaskResult | None, EphemeralValue]


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

DELTA: Final[Mapping[str, DeltaChannel[Any]]] = {
    name: each
    for name, hint in _HINTS.items()
    for each in getattr(hint, "__metadata__", ())
    if isinstance(each, DeltaChannel)
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
    gone = {name: None for name, kind in kinds.items() if kind is EphemeralValue}
    return gone, {name: _reducer(kind) for name, kind in kinds.items()}


def _reducer(kind: Any) -> Reducer:
    if isinstance(kind, DeltaChannel):
        return lambda known, write: kind.reducer(known, [write])
    if kind is _NOTHING or kind is EphemeralValue:
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
        made = channel == "messages" and not isinstance(value, Overwrite)
        if channel in _held() and not made and not _may_be_written(channel, value):
            kind = type(value.value if isinstance(value, Overwrite) else value).__name__
            return f"channel {channel!r} takes no such {kind}"
    return ""


def _may_be_written(channel: str, value: Any) -> bool:
    if isinstance(value, Overwrite):
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
