"""Building the result of a task from the record: what was spent, used, changed, recovered from."""

from typing import get_args

from daruma.state import budget, phases
from daruma.state.amounts import Measure
from daruma.state.channels import State
from daruma.state.ending import waits
from daruma.state.granting import shown
from daruma.state.lessons import Lessons
from daruma.state.recoveries import ended_with, outcomes
from daruma.state.result import TaskResult
from daruma.state.spending import usages_of
from daruma.state.status import Status
from daruma.state.step import Step, StepKind
from daruma.state.usage import usage_by_role
from daruma.state.verification import Verification

MOST_NAMED = 10
"""Files named in a note; of more, their number is told."""


def result_of(
    state: State,
    status: Status,
    output: str,
    now: float,
    *,
    notes: tuple[str, ...] = (),
    sandbox: str | None = None,
) -> TaskResult:
    """Return the result of the task at hand; ``now`` is Unix time in seconds."""
    steps = budget.of_task(state)
    kinds: tuple[StepKind, ...] = get_args(StepKind)
    seconds: dict[str, float] = {
        kind: sum(s.seconds for s in steps if s.kind == kind) for kind in kinds
    }
    started = state.task.started_at if state.task else now
    return TaskResult(
        task_id=state.task_id,
        status=status,
        output=output,
        error_message=state.error.to_error_message() if state.error else None,
        error_struct=state.error,
        phases=state.plan.phases if state.plan else (),
        verification=_verification(state),
        budgets={kind: budget.spent(steps, kind) for kind in kinds},
        usage=usage_by_role(usage for step in steps for usage in usages_of(step)),
        timings={**seconds, "total": now - started},
        audit=tuple(step.audit for step in steps if step.audit),
        recoveries=outcomes(steps, ended_with(state)),
        context_cost=tuple(step.context_cost for step in steps if step.context_cost),
        notes=(
            *notes,
            *_of_budget(steps),
            *_of_memory(state),
            *_of_lessons(state),
            *_of_workspace(state),
        ),
        sandbox=sandbox,
        clarification=state.clarification if status == "parked" and waits(state) else None,
        lessons=_lessons(state),
    )


def _verification(state: State) -> Verification | None:
    """Return what was checked: of a plan that failed, in the phase that failed first."""
    fallen = phases.first_failed(state.plan) if state.plan else None
    return fallen.verification if fallen else state.verification


def _of_workspace(state: State) -> tuple[str, ...]:
    """Say what a reader must know of the workspace: who else changed it, what has no snapshot."""
    of_task = [each for each in state.savepoints if each.task_id == state.task_id]
    notes = [f"savepoint {each.id}: {each.note}" for each in of_task if each.note]
    if state.drifted and state.drifted.task_id == state.task_id:
        notes.insert(0, f"files that somebody else changed meanwhile: {named(state.drifted.paths)}")
    return tuple(dict.fromkeys(notes))


def _of_budget(steps: list[Step]) -> tuple[str, ...]:
    """Say what was granted beyond the limits, and where work stopped as they were spent."""
    grants = [step.grant for step in steps if step.grant]
    measures: tuple[Measure, ...] = get_args(Measure)
    more = {m: sum(each.more.of(m) or 0.0 for each in grants) for m in measures}
    notes = [f"granted beyond its budget: {shown(m, more[m])}" for m in measures if more[m]]
    if any(each.stopped for each in grants):
        notes.append("stopped where its budget of tokens, money or time was spent")
    return tuple(notes)


def _of_memory(state: State) -> tuple[str, ...]:
    recalled = state.recalled
    return (
        (recalled.note,) if recalled and recalled.task_id == state.task_id and recalled.note else ()
    )


def _lessons(state: State) -> Lessons | None:
    lessons = state.lessons
    ours = lessons is not None and lessons.task_id == state.task_id and lessons.given
    return lessons if ours else None


def _of_lessons(state: State) -> tuple[str, ...]:
    lessons = state.lessons
    ours = lessons is not None and lessons.task_id == state.task_id
    return (lessons.note,) if lessons and ours and lessons.note else ()


def named(paths: tuple[str, ...]) -> str:
    """Name some paths on one line, at most ``MOST_NAMED`` of them."""
    more = len(paths) - MOST_NAMED
    return ", ".join(paths[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
