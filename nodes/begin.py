"""Start the next phase whose dependencies are completed."""

from langchain_core.messages import HumanMessage

from daruma.state import phases
from daruma.state.channels import State, Update
from daruma.state.events import PhaseStarted
from daruma.state.plan import Phase, Plan
from daruma.tools.context import Context


async def begin(state: State, context: Context) -> Update:
    """Make the first ready phase the current one and tell the model what it is."""
    if state.plan is None:
        raise LookupError("there is no plan to begin")
    phase = phases.ready(state.plan)[0]
    number = state.plan.phases.index(phase) + 1
    context.emit(
        PhaseStarted(phase_id=phase.id, title=phase.title, number=number, of=len(state.plan.phases))
    )
    message = HumanMessage(
        instructions(state.plan, phase, number), id=f"{state.plan.id}:begin:{phase.id}"
    )
    return {
        "plan": phases.start(state.plan, phase.id),
        "messages": [message],
        "calls": (),
        "verification": None,
        "failure": None,
        "origin": None,
    }


def instructions(plan: Plan, phase: Phase, number: int) -> str:
    """Say what a phase is about, in the words of the plan."""
    head = f"Phase {number} of {len(plan.phases)}: {phase.title}"
    return f"{head}\n\n{phase.instructions}" if phase.instructions else head
