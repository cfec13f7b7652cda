"""Close a phase: its outcome, and what that means for those that depend on it."""

from daruma.state import phases
from daruma.state.channels import State, Update
from daruma.state.ending import work_failure, work_status
from daruma.state.events import PhaseCompleted, PhaseFailed
from daruma.state.plan import Plan
from daruma.tools.context import Context


async def settle(state: State, context: Context) -> Update:
    """Mark the current phase as ended. A task without phases has nothing to close."""
    if state.plan is None or state.plan.current is None:
        return {}
    status = work_status(state)
    failure = work_failure(state, status)
    closed = phases.close(state.plan, state.plan.current, status, failure)
    if failure is None:
        context.emit(PhaseCompleted(phase_id=state.plan.current))
    else:
        context.emit(
            PhaseFailed(
                phase_id=state.plan.current,
                outcome=status,
                reason=failure.message,
                fallen=fallen(state.plan, closed),
            )
        )
    return {"plan": closed, "failure": None, "origin": None, "calls": ()}


def fallen(before: Plan, after: Plan) -> tuple[str, ...]:
    """Return the ids of the phases that failed because another one did."""
    pending = {phase.id for phase in before.phases if phase.status == "pending"}
    return tuple(p.id for p in after.phases if p.id in pending and p.status == "failed")
