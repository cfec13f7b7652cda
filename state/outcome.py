"""How a task ended, and the result that is built from its record (MO-07)."""

from typing import Final, get_args

from langchain_core.messages import AIMessage

from daruma.state import budget
from daruma.state import plan as phases
from daruma.state.budget import ended_with, outcomes
from daruma.state.channels import State
from daruma.state.failure import Code, Failure
from daruma.state.lessons import Lessons
from daruma.state.result import TaskResult
from daruma.state.spending import shown, stopped, usages_of
from daruma.state.steps import Step, StepKind
from daruma.state.task import Measure, Status
from daruma.state.usage import usage_by_role
from daruma.state.verification import Verification, excerpt

# --- How the work of a phase, or of a task without phases, ended: a pure reading of the state.

_OF_CODE: Final[dict[Code, Status]] = {
    "approval_denied": "blocked",
    "budget_exceeded": "budget_exceeded",
}


def work_status(state: State) -> Status:
    """Name the outcome of the work at hand.

    A failure counts first, then what the checks said, then whether there is an answer at all.
    """
    if state.failure:
        return _OF_CODE.get(state.failure.code, "failed")
    if waits(state):
        return "parked"
    if state.verification and not state.verification.passed:
        return "budget_exceeded" if stopped(state) else _status_of_red(state)
    if state.verification and state.verification.checks and not turn_is_over(state):
        return "completed"
    if answer(state):
        return "completed"
    return "budget_exceeded" if stopped(state) else "max_steps_exceeded"


def work_failure(state: State, status: Status) -> Failure | None:
    """Return the failure behind a status: the first one if there was one, else one made of it."""
    if status == "completed":
        return None
    if state.origin or state.failure:
        return state.origin or state.failure
    if status == "budget_exceeded":
        return Failure(code="budget_exceeded", node="main", message=spent_text(state))
    if state.verification and not state.verification.passed:
        message = f"verification failed: {state.verification.summary}"
        detail = excerpt(state.verification)
        return Failure(code="verification_failed", node="verify", message=message, detail=detail)
    return Failure(code="max_steps_exceeded", node="main", message=stopped_text(state))


def waits(state: State) -> bool:
    """Whether the turn ends with a question to the user, and goes on with what they say."""
    asked = state.clarification
    return asked is not None and asked.status == "open" and asked.task_id == state.task_id


def gave_up_asking(state: State) -> bool:
    """Whether the user was asked for the same so often that it is no use to ask again."""
    asked = state.clarification
    return asked is not None and asked.status == "given_up" and asked.task_id == state.task_id


def answer(state: State) -> str:
    """Return the model's candidate answer: the text of a last message without tool calls."""
    last = state.messages[-1] if state.messages else None
    if isinstance(last, AIMessage) and not last.tool_calls:
        return last.text.strip()
    return ""


def stopped_text(state: State) -> str:
    """Say which limit ended the loop, in the words of TL-16."""
    if turn_is_over(state):
        return "Stopped: exceeded max_steps_per_turn."
    return (
        "Stopped: exceeded max_steps." if state.plan is None else "Stopped: exceeded think steps."
    )


def spent_text(state: State) -> str:
    """Say that the budget ended the work, and what the last checks said."""
    checked = state.verification.summary if state.verification else ""
    return f"Stopped: the budget is spent. {checked}".strip()


def turn_is_over(state: State) -> bool:
    """Whether the turn's limit was reached before the model had answered."""
    turn = state.task.limits.turn if state.task else None
    return turn is not None and budget.in_task(state, "think") >= turn and not answer(state)


def _status_of_red(state: State) -> Status:
    if budget.reflected(state):
        return "gave_up_after_reflections"
    return "failed" if budget.can_think(state) else "max_steps_exceeded"


# --- Building the result of a task from the record: what was spent, used, changed, recovered from.

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
