"""Start the next phase whose dependencies are completed; in a team, all of them at once."""

from dataclasses import replace
from pathlib import Path

from langchain_core.messages import HumanMessage

from daruma.state import plan as phases
from daruma.state.channels import State, Update
from daruma.state.events import MemberStarted, PhaseStarted
from daruma.state.failure import Failure
from daruma.state.plan import Phase, Plan
from daruma.state.verification import judged_by
from daruma.tools.context import Context
from daruma.tools.rollback import Written, write_savepoint
from daruma.tools.team import worktree_folder


async def begin(state: State, context: Context) -> Update:
    """Keep the workspace as it is, start the ready phases, and tell the model what to do.

    A phase that asks for a snapshot to go back to is not begun without one.
    """
    if state.plan is None:
        raise LookupError("there is no plan to begin")
    shared = state.task is not None and state.task.mode == "team_collab"
    now = phases.for_members(state.plan, context.settings.team.max_parallel) if shared else ()
    chosen = now or phases.ready(state.plan)[:1]
    plan, written = state.plan, Written([])
    for phase in chosen:
        _emit_started(state, phase, context, shared=shared)
        one = await write_savepoint(state.task, "phase", context, phase_id=phase.id)
        written = Written([*written.savepoints, *one.savepoints])
        plan = phases.start(plan, phase.id)
    update: Update = {
        "plan": replace(plan, current=chosen[0].id),
        "savepoints": written.savepoints,
        "calls": (),
        "verification": None,
        "failure": None if shared else refusal(chosen[0], written),
        "origin": None,
        "reports": (),
    }
    if not shared:
        text = instructions(state.plan, chosen[0], state.plan.phases.index(chosen[0]) + 1)
        message_id = phases.message_id(state.plan.id, chosen[0].id)
        update["messages"] = [HumanMessage(text, id=message_id)]
    return update


def refusal(phase: Phase, written: Written) -> Failure | None:
    """Return why a phase is not begun: the snapshot that it asks for can not be taken."""
    if phase.rollback != "snapshot" or not written.missing:
        return None
    message = f"phase {phase.id!r} is to be rolled back by a snapshot, and has none: "
    return Failure(code="workspace_conflict", node="begin", message=message + written.missing)


def instructions(plan: Plan, phase: Phase, number: int) -> str:
    """Say what a phase is about, in the words of the plan."""
    head = f"Phase {number} of {len(plan.phases)}: {phase.title}"
    return "\n\n".join(filter(None, (head, phase.instructions, judged_by(phase.rubric))))


def _emit_started(state: State, phase: Phase, context: Context, *, shared: bool) -> None:
    every = state.plan.phases if state.plan else ()
    number = every.index(phase) + 1
    context.emit(PhaseStarted(phase_id=phase.id, title=phase.title, number=number, of=len(every)))
    if shared:
        workspace = state.task.workspace if state.task else None
        if workspace and state.plan:  # a member works in a copy of it
            thread = f"{context.files_of}\0{state.plan.id}"
            workspace = str(worktree_folder(Path(workspace), thread, phase.id))
        context.emit(
            MemberStarted(phase_id=phase.id, expert=phase.expert or "", workspace=workspace)
        )
