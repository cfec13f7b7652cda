"""The plan of a task: phases, what they depend on, and how far they came."""

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from daruma.state.errors import DarumaError
from daruma.state.failure import Failure
from daruma.state.record import record
from daruma.state.status import Status
from daruma.state.verification import Verification

Command = Annotated[str | None, AfterValidator(lambda text: (text or "").strip() or None)]
"""A shell line; a blank one is none."""

PhaseStatus = Literal["pending", "running", "completed", "failed"]


MAX_PHASES = 50
"""Phases of one plan: each has a budget of its own, so more would be without a bound."""


class PlanRefused(DarumaError):
    """Raised when a plan can not be carried out; says which phases are the reason."""


@record
class Phase:
    """One part of a plan. ``status`` says how far it came, ``outcome`` how it ended.

    ``rollback`` "snapshot" puts the workspace back as it was before the phase, should it fail.
    ``conflicts`` are the files in which a team member's work met other work; ``settles`` names the
    phase whose conflicts this one is there to settle. ``answer`` is what a team member said when it
    was done; ``unmerged`` are the snapshots that its work began and ended with, if it conflicts.
    """

    id: str
    title: str
    instructions: str = ""
    depends_on: tuple[str, ...] = ()
    expert: str | None = None
    validation_command: Command = None
    rollback_command: Command = None
    rollback: Literal["snapshot"] | None = None
    conflicts: tuple[str, ...] = ()
    settles: str | None = None
    unmerged: tuple[str, str] | None = None
    answer: str = ""
    status: PhaseStatus = "pending"
    outcome: Status | None = None
    failure: Failure | None = None
    verification: Verification | None = None
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the phase as JSON-able values; what is not set is left out."""
        optional = {
            "expert": self.expert,
            "validation_command": self.validation_command,
            "rollback_command": self.rollback_command,
            "rollback": self.rollback,
            "conflicts": list(self.conflicts) or None,
            "settles": self.settles,
            "answer": self.answer or None,
            "outcome": self.outcome,
            "error": self.failure.message if self.failure else None,
            "verification": self.verification.summary if self.verification else None,
        }
        return {
            "id": self.id,
            "title": self.title,
            "instructions": self.instructions,
            "depends_on": list(self.depends_on),
            "status": self.status,
            **{key: value for key, value in optional.items() if value is not None},
        }


@record
class Plan:
    """The *spec* of a task. ``current`` is the id of the phase that is running or ended last.

    ``first_failed`` is the one that failed first of its own, not with another. ``parked`` says that
    nobody confirmed it in time: it waits, without a deadline.
    """

    id: str
    goal: str
    phases: tuple[Phase, ...]
    current: str | None = None
    first_failed: str | None = None
    parked: bool = False
    schema_version: int = 1

    def __post_init__(self) -> None:
        check_phases(self.phases)

    def phase(self, phase_id: str | None) -> Phase | None:
        return next((phase for phase in self.phases if phase.id == phase_id), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON-able values."""
        phases = [phase.to_dict() for phase in self.phases]
        return {"id": self.id, "goal": self.goal, "phases": phases}


def check_phases(phases: Iterable[Phase]) -> None:
    """Refuse a plan without phases, with an id twice, an unknown dependency or a cycle.

    Raises :class:`PlanRefused` with the ids in question.
    """
    phases = tuple(phases)
    _check_ids([phase.id for phase in phases])
    proposed = sum(phase.settles is None for phase in phases)
    if proposed > MAX_PHASES:
        raise PlanRefused(f"the plan has {proposed} phases; {MAX_PHASES} is the most")
    for phase in phases:
        if unknown := sorted(set(phase.depends_on) - {other.id for other in phases}):
            raise PlanRefused(f"phase {phase.id!r} depends on unknown phases: {', '.join(unknown)}")
    try:
        TopologicalSorter({phase.id: phase.depends_on for phase in phases}).prepare()
    except CycleError as error:
        raise PlanRefused(f"phases depend on each other: {' -> '.join(error.args[1])}") from None


def _check_ids(ids: list[str]) -> None:
    if not ids:
        raise PlanRefused("the plan has no phases")
    if twice := sorted({phase_id for phase_id in ids if ids.count(phase_id) > 1}):
        raise PlanRefused(f"phase ids are used more than once: {', '.join(twice)}")
