"""Live things of one run: they hang on its config, and end with it."""

from asyncio import Lock
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from operator import is_
from typing import Any, ClassVar, Self, TypeVar, TypeVarTuple
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.events import Event, PhaseCompleted, PhaseFailed, TaskCompleted, TaskStarted
from daruma.state.savepoint import Drifted
from daruma.state.settings import Settings
from daruma.tools.calls import McpServers, WorkspaceTurns
from daruma.tools.context import Context
from daruma.tools.rollback import drift

# --- Live things that belong to one run: they hang on its config, and end with it.


class OfARun:
    """What one run has of a kind. LangGraph neither stores nor shows keys of this form."""

    _key: ClassVar[str]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._key = f"__pregel_daruma_{cls.__name__}"

    @classmethod
    def found_in(cls, config: RunnableConfig) -> Self | None:
        """Return that of the run which a node is called in; None outside of any."""
        found = config.get("configurable", {}).get(cls._key)
        return found if isinstance(found, cls) else None

    def noted(self, config: RunnableConfig | None) -> RunnableConfig:
        """Return the config of a run that this is to be of."""
        given = config or RunnableConfig()
        configurable = given.get("configurable", {}) | {self._key: self}
        return RunnableConfig(**{**given, "configurable": configurable})


# --- What all nodes of one run work with: made for the first of them, and found by the others.

T = TypeVar("T")
Of = TypeVarTuple("Of")


class CommonGround(OfARun):
    """What was made last, and what it was made of: members may have settings of their own."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], Any] = (), None

    @classmethod
    def of(cls, config: RunnableConfig) -> "CommonGround":
        """Return that of the run which a node is called in; a new one outside of any."""
        return cls.found_in(config) or cls()

    def made(self, make: Callable[[*Of], T], *of: *Of) -> T:
        """Return what is made of these very things."""
        known, made = self._last
        if len(known) != len(of) or not all(map(is_, known, of)):
            made = make(*of)
            self._last = of, made
        found: T = made
        return found


# --- The first look of a run that goes on: what changed in the workspace while nobody ran (RO-07).


class FirstLook(OfARun):
    """Looks once in a run, before its first node does anything; several wait for one look."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken = False

    async def at(self, node: str, state: Any, context: Context) -> Drifted | None:
        """Return what drifted, for the first node only; ``intake`` looks for itself."""
        if self._taken and not self._lock.locked():
            return None
        async with self._lock:  # a sibling's work must not be taken for what others changed
            first, self._taken = not self._taken, True
            if not first or node == "intake":
                return None
            return await drift(state.task, context, getattr(state, "drifted", None))


# --- The turns of a run: whose call changes a workspace, and which run it is that makes the calls.


@dataclass(frozen=True)
class RunTurns(OfARun):
    """What is one run's own, from when it is started until it stops.

    ``servers`` are the MCP servers that it calls, ended by who started the run (FA-11).
    """

    run: str = field(default_factory=lambda: uuid4().hex)
    turns: WorkspaceTurns = field(default_factory=WorkspaceTurns)
    servers: McpServers | None = None

    @classmethod
    def of(cls, config: RunnableConfig) -> "RunTurns":
        """Return those of the run which a node is called in; new ones outside of any."""
        return cls.found_in(config) or cls()


# --- Running the machine once more for a team member, within a run of the machine (PL-06).

MemberMachine = CompiledStateGraph[State, Settings, State, State]

_TASKS_OWN = (TaskStarted, TaskCompleted, PhaseCompleted, PhaseFailed)
"""What the task says itself, once a member's work is merged."""


class SaverRefused(DarumaError):
    """Raised when members can not keep their steps where the task keeps its own."""


def no_members() -> MemberMachine:
    """Stand for the machine of members where there are none."""
    raise LookupError("this machine has no members")


@dataclass(frozen=True)
class Members(OfARun):
    """The machine that members run; it hangs on the run, since it knows what runs it."""

    machine: Callable[[], MemberMachine]

    @classmethod
    def of(cls, config: RunnableConfig) -> "Members":
        """Return that of the run which a node is called in. Raises LookupError outside of any."""
        found = cls.found_in(config)
        if found is None:
            raise LookupError("there is no run of a machine that has members")
        return found


@dataclass(frozen=True)
class Member(OfARun):
    """The member that a node works for: its phase, and where its events go."""

    phase_id: str
    emit: Callable[[Event], None]

    def tell(self, event: Event) -> None:
        """Send an event to whoever watches the task, with the member's name on it."""
        if not isinstance(event, _TASKS_OWN):
            self.emit(replace(event, member=self.phase_id))


@dataclass(frozen=True)
class Carrying:
    """A :class:`~daruma.tools.context.CarryOut` within a node of a run."""

    config: RunnableConfig
    emit: Callable[[Event], None]

    async def __call__(self, state: State, settings: Settings, /) -> State:
        """Run a member's machine; where it was interrupted or killed, it goes on from there.

        Raises :class:`SaverRefused`.
        """
        _check_saver(self.config)
        phase = state.plan.current if state.plan else None
        config = Member(phase or "", self.emit).noted(self.config)
        given = {each.name: getattr(state, each.name) for each in fields(state)}
        given = {name: value for name, value in given.items() if value not in (None, (), [])}
        machine: Any = Members.of(self.config).machine()
        ended = await machine.ainvoke(given, config, context=settings)
        return State(**ended)


def _check_saver(config: RunnableConfig) -> None:
    saver = config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINTER)
    if saver and type(saver).aget_tuple is BaseCheckpointSaver.aget_tuple:
        raise SaverRefused(
            f"a team needs a checkpointer that can be used asynchronously, and "
            f"{type(saver).__name__} can not: give open_postgres() as persistence"
        )
