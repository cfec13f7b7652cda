"""One team member at work: the machine once more, on one phase, in a worktree of its own."""

from dataclasses import replace
from pathlib import Path

from daruma.tools.team.worktree import Worktree, make
from langchain_core.messages import HumanMessage

from daruma.state import phases
from daruma.state.assignment import Assignment, Report
from daruma.state.channels import State, Update
from daruma.state.ending import answer
from daruma.state.errors import DarumaError
from daruma.state.events import MemberCompleted
from daruma.state.failure import Failure
from daruma.state.plan import Plan
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.files.threads import in_thread
from daruma.tools.team.member_settings import expert_of, settings_of
from daruma.tools.team.places import worktree_of

MOST_SAID = 4000
"""Characters of a member's answer that are passed on."""


async def member(given: Assignment, context: Context) -> Update:
    """Carry out one phase, and report what became of it; the plan is not this one's to change."""
    try:
        worktree = await _worktree(given, context)
        ended = await context.carry_out(
            started(given, worktree, context), settings_of(given.task, given.phase, context)
        )
        report = await _report(given, ended, worktree, context)
    except (ToolError, DarumaError) as error:
        failure = Failure(code="workspace_conflict", node="member", message=str(error))
        report = Report(
            phase=replace(given.phase, status="failed", outcome="failed", failure=failure)
        )
    context.emit(
        MemberCompleted(
            phase_id=given.phase.id,
            expert=given.phase.expert or "",
            outcome=report.phase.outcome or "failed",
        )
    )
    return {"reports": report}


def started(given: Assignment, worktree: Worktree | None, context: Context) -> State:
    """Return the state that the member's own machine starts with: a plan of this one phase."""
    phase = replace(given.phase, depends_on=(), status="pending")
    plan = Plan(id=given.plan_id, goal=given.task.goal, phases=(phase,))
    expert = expert_of(given.task, given.phase, context)
    task = replace(
        given.task,
        workspace=str(worktree.folder) if worktree else None,
        expert=expert.name if expert else given.phase.expert,
        role=expert.prompt if expert else "",
        review=False,
    )
    head = f"Phase {given.number} of {given.of}: {phase.title}"
    said = (head, phase.instructions, given.known)
    message = HumanMessage(
        "\n\n".join(each for each in said if each), id=f"{given.plan_id}:begin:{phase.id}"
    )
    return State(task=task, plan=phases.start(plan, phase.id), messages=[message])


async def _worktree(given: Assignment, context: Context) -> Worktree | None:
    workspace = given.task.workspace
    snapshots = context.snapshots(workspace)
    if workspace is None:
        return None
    if snapshots is None or given.snapshot is None:
        raise ToolError(
            f"phase {given.phase.id!r} has no worktree: a team works on snapshots of the "
            "workspace, and none could be taken (rollback.snapshots)"
        )
    folder = worktree_of(Path(workspace), context.thread_id, given.plan_id, given.phase.id)
    return await make(Path(workspace), given.snapshot, folder, snapshots)


async def _report(
    given: Assignment, ended: State, worktree: Worktree | None, context: Context
) -> Report:
    closed = ended.plan.phase(given.phase.id) if ended.plan else None
    if closed is None:
        raise LookupError(f"the member of phase {given.phase.id!r} lost its plan")
    said = answer(ended)[:MOST_SAID] if closed.status == "completed" else ""
    phase = replace(closed, depends_on=given.phase.depends_on, answer=said)
    snapshot = None
    if worktree and (own := context.snapshots(str(worktree.folder))):
        taken = await in_thread(own.take, f"work on {phase.id}", by="work")
        snapshot = taken.snapshot.id
    return Report(
        phase=phase,
        steps=tuple(ended.steps),
        snapshot=snapshot,
        drawn_from=given.snapshot,
        notes=(worktree.note,) if worktree and worktree.note else (),
    )
