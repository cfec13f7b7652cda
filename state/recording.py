"""Adding to the record of steps."""

from typing_extensions import TypedDict, Unpack

from daruma.state.audit import Audit
from daruma.state.channels import State
from daruma.state.context_cost import ContextCost
from daruma.state.grant import Grant
from daruma.state.recovery import Recovered
from daruma.state.step import Step, StepKind
from daruma.state.usage import Usage


class Details(TypedDict, total=False):
    """What may be told of a step beside its kind and time; see :class:`Step`."""

    seconds: float
    ok: bool
    signature: str
    usage: Usage | None
    audit: Audit | None
    saw: str
    blockers: tuple[str, ...]
    recovery: Recovered | None
    counted: int
    context_cost: ContextCost | None
    grant: Grant | None


def record_step(
    state: State, kind: StepKind, *, at: float, **details: Unpack[Details]
) -> list[Step]:
    """Return the update of ``steps`` for one step of the task, in the phase that is current."""
    phase_id = state.plan.current if state.plan else None
    return [Step(kind=kind, task_id=state.task_id, phase_id=phase_id, at=at, **details)]
