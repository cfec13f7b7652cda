"""What a team member is given, and what it brings back (PL-06)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from daruma.state.lessons import Lessons
from daruma.state.plan import Phase, Plan
from daruma.state.record import record
from daruma.state.savepoint import savepoint_id
from daruma.state.shares import with_shares
from daruma.state.step import Step
from daruma.state.task import Task

if TYPE_CHECKING:
    from daruma.state.channels import State


@record
class Assignment:
    """One phase for one member. ``known`` says what the phases before it came to.

    ``snapshot`` is the state of the task's workspace that the member's worktree is made from,
    ``unmerged`` the work that it is to settle, if any: its first and its last snapshot.
    ``lessons`` holds the instructions that were learned for the member's expert.
    """

    task: Task
    phase: Phase
    plan_id: str
    number: int
    of: int
    known: str = ""
    snapshot: str | None = None
    unmerged: tuple[str, str] | None = None
    lessons: Lessons | None = None
    schema_version: int = 1


@record
class Report:
    """What became of a phase. ``phase`` is closed, ``steps`` are those that its member spent.

    ``snapshot`` is the state that the member left its worktree in, ``drawn_from`` the one that it
    was made from; None where there is no workspace.
    """

    phase: Phase
    steps: tuple[Step, ...] = ()
    snapshot: str | None = None
    drawn_from: str | None = None
    notes: tuple[str, ...] = ()
    schema_version: int = 1


def reduce_reports(
    reports: tuple[Report, ...], write: tuple[Report, ...] | Report
) -> tuple[Report, ...]:
    """Reduce the ``reports`` channel: one report joins the others, a tuple takes their place."""
    if not isinstance(write, Report):
        return tuple(write)
    others = (report for report in reports if report.phase.id != write.phase.id)
    return (*others, write)


def assignments(state: "State") -> list[object]:
    """Return what the members are sent: one assignment for each phase that is running."""
    if state.task is None or state.plan is None:
        return []
    snapshots = {each.id: each.snapshot for each in state.savepoints}
    running = [each for each in enumerate(state.plan.phases, 1) if each[1].status == "running"]
    tasks = shares(state.task, state.steps, len(running))
    tasks = with_shares(state, tasks, [phase.id for _, phase in running])
    return [
        Assignment(
            task=task,
            phase=phase,
            plan_id=state.plan.id,
            number=number,
            of=len(state.plan.phases),
            known=known(state.plan, phase),
            snapshot=snapshots.get(savepoint_id(task.id, phase.id, "phase")),
            lessons=_lessons_for(state, phase),
            unmerged=settled.unmerged if (settled := state.plan.phase(phase.settles)) else None,
        )
        for task, (number, phase) in zip(tasks, running, strict=True)
    ]


def _lessons_for(state: "State", phase: Phase) -> Lessons | None:
    """Return what was learned for an expert; the pitfalls are the planner's to avoid."""
    given = state.lessons.instructions if state.lessons else ()
    own = tuple(each for each in given if each.actor == phase.expert)
    return replace(state.lessons, pitfalls=(), instructions=own) if state.lessons and own else None


def shares(task: Task, steps: Iterable[Step], members: int) -> list[Task]:
    """Return the task once for each member, with its share of what is left of the turn (TL-16)."""
    turn = task.limits.turn
    if turn is None:
        return [task] * members
    spent = sum(step.kind == "think" and step.task_id == task.id for step in steps)
    each, over = divmod(max(turn - spent, 0), max(members, 1))
    turns = (each + (number < over) for number in range(members))
    return [replace(task, limits=replace(task.limits, turn=share)) for share in turns]


def known(plan: Plan, phase: Phase) -> str:
    """Say what the phases that a phase depends on came to."""
    before = (plan.phase(id_) for id_ in phase.depends_on)
    return "\n\n".join(f"Done before, {p.id}: {p.title}\n{p.answer}".strip() for p in before if p)
