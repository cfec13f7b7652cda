"""Running the machine once more for a team member, within a run of the machine (PL-06)."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from daruma.graph.of_a_run import OfARun
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.events import (
    Event,
    PhaseCompleted,
    PhaseFailed,
    TaskCompleted,
    TaskStarted,
)
from daruma.state.settings import Settings

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
