"""Adding to the record of steps."""

from daruma.state.channels import State
from daruma.state.step import Step, StepKind
from daruma.state.usage import Usage


def record_step(
    state: State,
    kind: StepKind,
    *,
    at: float,
    seconds: float = 0.0,
    ok: bool = True,
    signature: str = "",
    usage: Usage | None = None,
) -> list[Step]:
    """Return the update of ``steps`` for one step of the task, in the phase that is current."""
    step = Step(
        kind=kind,
        task_id=state.task_id,
        phase_id=state.plan.current if state.plan else None,
        ok=ok,
        at=at,
        seconds=seconds,
        signature=signature,
        usage=usage,
    )
    return [step]
