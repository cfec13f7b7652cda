"""How the work of a phase, or of a task without phases, ended: a pure reading of the state."""

from typing import Final

from langchain_core.messages import AIMessage

from daruma.state import budget
from daruma.state.channels import State
from daruma.state.failure import Code, Failure
from daruma.state.spending import stopped
from daruma.state.status import Status
from daruma.state.verification import excerpt

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
