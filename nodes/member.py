"""One team member or helper at work: the machine once more, on one phase, in its own worktree."""

from dataclasses import replace

from langchain_core.messages import HumanMessage

from daruma.state import plan as phases
from daruma.state.channels import State, Update
from daruma.state.errors import CutOff, DarumaError
from daruma.state.events import Event, MemberCompleted
from daruma.state.failure import Code, Failure
from daruma.state.lessons import Recalled
from daruma.state.outcome import LONGEST_ANSWER, answer, last_answer
from daruma.state.plan import Assignment, Phase, Plan, Report
from daruma.state.savepoint import Savepoint, savepoint_id
from daruma.state.verification import judged_by
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.memory import recall
from daruma.tools.skills import with_trusted_skills
from daruma.tools.snapshots import SnapshotUnavailable
from daruma.tools.team import (
    Expert,
    MemberWorktree,
    WorktreeUnavailable,
    expert_of,
    helper_settings,
    make_worktree,
    settings_of,
)
from daruma.tools.threads import in_thread


async def member(given: Assignment, context: Context) -> Update:
    """Carry out one phase, and report what became of it; the plan is not this one's to change.

    That of a helper is what its call asks for (PL-08).
    """
    try:
        report = await _carry_out_phase(given, context)
    except CutOff:  # its own machine could not be written down: that is no failure of the phase
        raise
    except (ToolError, DarumaError) as error:
        report = _failed_report(given, error)
    outcome = report.phase.outcome or "failed"
    context.emit(
        MemberCompleted(phase_id=given.phase.id, expert=given.phase.expert or "", outcome=outcome)
    )
    return {"reports": report}


async def _carry_out_phase(given: Assignment, context: Context) -> Report:
    expert = await expert_of(given, context.settings)
    helps = given.task.helps
    place = None if helps == "reads" else await make_worktree(given, context)
    begun = build_member_state(given, expert, place)
    settings = settings_of(expert, context.settings)
    if helps:
        settings = helper_settings(expert, given.task, context)
    settings = await in_thread(with_trusted_skills, settings, given.task.workspace)
    recalled = await _recall_for_phase(begun, given.phase, context)
    begun = replace(
        begun, recalled=recalled, lessons=given.lessons, instructions=given.instructions
    )
    ended = await context.carry_out(begun, settings)
    try:
        report = await _build_report(given, ended, place)
        if not helps:
            return report
        # The report has the ends of a helper's answer; the whole is kept beside the state.
        said = await context.outputs.shorten(answer(ended) or last_answer(ended), LONGEST_ANSWER)
        phase = replace(report.phase, answer=said.text)
        return replace(report, phase=phase, reference=said.reference)
    except CutOff:
        raise
    except (ToolError, DarumaError) as error:  # what it has spent stays on record
        return replace(_failed_report(given, error), steps=tuple(ended.steps))


def _failed_report(given: Assignment, error: Exception) -> Report:
    gone = isinstance(error, ToolError | SnapshotUnavailable | WorktreeUnavailable)
    code: Code = "workspace_conflict" if gone else "bad_request"
    failure = Failure(code=code, node="member", message=str(error))
    return Report(phase=replace(given.phase, status="failed", outcome="failed", failure=failure))


def build_member_state(
    given: Assignment, expert: Expert | None, place: MemberWorktree | None
) -> State:
    """Return the state that the member's own machine starts with: a plan of this one phase.

    Its savepoint is the worktree as it was drawn: what a rollback goes back to.
    """
    helps = given.task.helps
    phase = replace(given.phase, depends_on=(), status="pending")
    plan = Plan(id=given.plan_id, goal=given.task.goal, phases=(phase,))
    task = replace(
        given.task,
        workspace=str(place.folder) if place else given.task.workspace if helps else None,
        expert=expert.name if expert else given.phase.expert,
        role=expert.prompt if expert else "",
        review=False,
    )
    said = (
        f"Phase {given.number} of {given.of}: {phase.title}",
        phase.instructions,
        given.known,
        judged_by(phase.rubric),
    )
    text = phase.instructions if helps else "\n\n".join(each for each in said if each)
    message = HumanMessage(text, id=phases.message_id(given.plan_id, phase.id))
    drawn = place and Savepoint(
        id=savepoint_id(task.id, phase.id, "phase"),
        task_id=task.id,
        phase_id=phase.id,
        when="phase",
        workspace=str(place.folder),
        snapshot=place.began.id,
        at=place.began.at,
    )
    return State(
        task=task,
        plan=phases.start(plan, phase.id),
        messages=[message],
        savepoints=[drawn] if drawn else [],
    )


async def _recall_for_phase(begun: State, phase: Phase, context: Context) -> Recalled | None:
    """Recall what fits the phase: the common memories, and those of the expert's role."""
    if begun.task is None:
        return None
    about = f"{phase.title}\n{phase.instructions}\n{begun.task.goal}"

    def emit(event: Event) -> None:
        context.emit(replace(event, member=phase.id))

    return await recall(begun.task, about, context.store, context.settings.memory, emit)


async def _build_report(given: Assignment, ended: State, place: MemberWorktree | None) -> Report:
    closed = ended.plan.phase(given.phase.id) if ended.plan else None
    if closed is None:
        raise LookupError(f"the member of phase {given.phase.id!r} lost its plan")
    report = Report(
        phase=replace(closed, depends_on=given.phase.depends_on), steps=tuple(ended.steps)
    )
    recalled = ended.recalled.note if ended.recalled else ""
    notes: tuple[str, ...] = (recalled,) if recalled else ()
    if place is None:
        return replace(report, notes=notes)
    taken = await in_thread(place.snapshots.take, f"the end of {closed.id}", by="work")
    notes += (f"phase {closed.id}: {place.note}",) if place.note else ()
    return replace(report, drawn_from=place.began.id, snapshot=taken.snapshot.id, notes=notes)
