"""Classify by rule what the task failed of, and build the structured error. No model is asked."""

from dataclasses import replace

from daruma.state import plan as phases
from daruma.state.channels import State, Update
from daruma.state.emergency import emergency_of
from daruma.state.events import phase_failed
from daruma.state.failure import Failure
from daruma.state.outcome import work_failure, work_status
from daruma.tools.context import Context


async def emergency(state: State, context: Context) -> Update:
    """State the error under the code of the first failure (EM-04); running phases end with it."""
    failure = first_failure(state)
    update: Update = {"error": emergency_of(failure, context.settings.fallback_chain)}
    running = [p.id for p in state.plan.phases if p.status == "running"] if state.plan else []
    if state.plan and state.failure and running:
        own, plan = state.origin or state.failure, state.plan
        for phase_id in running:
            before = replace(plan, current=phase_id)
            plan = phases.close(before, phase_id, "failed", own)
            context.emit(phase_failed(before, plan))
        update["plan"] = plan
    return update


def first_failure(state: State) -> Failure:
    """Return the failure that the task is reported under.

    A rollback that failed comes before all: nothing may be built on what it left behind (RO-03).
    Then a script that did not fit the run: it has to be mended first.
    """
    if state.failure and state.failure.code in ("rollback_failed", "script_mismatch"):
        return state.failure
    fallen = phases.first_failed(state.plan) if state.plan else None
    if fallen and fallen.failure:
        return fallen.failure
    found = work_failure(state, work_status(state))
    return found or Failure(code="internal_error", node="emergency", message="the cause is unknown")
