"""Start the next phase whose dependencies are completed."""

from langchain_core.messages import HumanMessage

from daruma.state import phases
from daruma.state.channels import State, Update
from daruma.state.events import PhaseStarted
from daruma.state.failure import Failure
from daruma.state.plan import Phase, Plan
from daruma.tools.context import Context
from daruma.tools.savepoints import Written, write_savepoint


async def begin(state: State, context: Context) -> Update:
    """Make the first ready phase the current one, keep the workspace, tell the model what to do.

    A phase that asks for a snapshot to go back to is not begun without one.
    """
    if state.plan is None:
        raise LookupError("there is no plan to begin")
    phase = phases.ready(state.plan)[0]
    number = state.plan.phases.index(phase) + 1
    context.emit(
        PhaseStarted(phase_id=phase.id, title=phase.title, number=number, of=len(state.plan.phases))
    )
    written = await write_savepoint(state.task, "phase", context, phase_id=phase.id)
    message = HumanMessage(
        instructions(state.plan, phase, number), id=f"{state.plan.id}:begin:{phase.id}"
    )
    return {
        "plan": phases.start(state.plan, phase.id),
        "savepoints": written.savepoints,
        "messages": [message],
        "calls": (),
        "verification": None,
        "failure": refusal(phase, written),
        "origin": None,
    }


def refusal(phase: Phase, written: Written) -> Failure | None:
    """Return why a phase is not begun: the snapshot that it asks for can not be taken."""
    if phase.rollback != "snapshot" or not written.missing:
        return None
    message = f"phase {phase.id!r} is to be rolled back by a snapshot, and has none: "
    return Failure(code="workspace_conflict", node="begin", message=message + written.missing)


def instructions(plan: Plan, phase: Phase, number: int) -> str:
    """Say what a phase is about, in the words of the plan."""
    head = f"Phase {number} of {len(plan.phases)}: {phase.title}"
    return f"{head}\n\n{phase.instructions}" if phase.instructions else head
