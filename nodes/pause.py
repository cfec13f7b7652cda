"""Ask what becomes of work whose budget is spent, or that was told to stop (BU-04, RE-03a)."""

from typing import Final, Literal

from langchain_core.messages import HumanMessage

from daruma.state import budget
from daruma.state.budget import record_step
from daruma.state.channels import State, Update
from daruma.state.events import BudgetSettled
from daruma.state.failure import Failure
from daruma.state.interrupts import Answer, Question, ask_person
from daruma.state.spending import (
    AGAIN,
    STOP,
    describe_overrun,
    has_unchecked_work,
    in_words,
    is_stopped,
    read_grant,
    says_stop,
)
from daruma.state.steps import Grant, Overrun
from daruma.state.task import Amounts
from daruma.state.verification import excerpt
from daruma.tools.context import Context
from daruma.tools.verification import with_changed_tests

# --- A budget that is spent: whether a person is asked, the question, and each of its answers.


def spent_limit(state: State) -> Overrun:
    """Return the limit that is reached. Raises LookupError where there is none."""
    if state.overrun is None or state.task is None:
        raise LookupError("there is no budget that is spent")
    return state.overrun


def asks_person(state: State, context: Context) -> bool:
    """Whether a person is asked: by the settings of the task, and not after they said to stop."""
    if spent_limit(state).measure in ("steps", "stop"):  # whoever found them spent has looked
        return True
    wanted = state.task is not None and state.task.limits.when_spent == "ask"
    return wanted and context.can_ask and not is_stopped(state)


def question_of(state: State) -> Question:
    """Build the question: what is spent, and what can be said to that.

    Whoever had the task stand still is asked, too: a person's words, no part of the budget (FA-14).
    """
    over = spent_limit(state)
    if over.measure == "steps":
        return _question_of_steps(state)
    if over.measure == "stop":
        told = f'"{GO_ON}", "{STOP}", or what to do instead'
        return _question(state, "stop", "The task stands still, as you said.", told)
    example = in_words(over.measure, _limit_of(state, over))
    told = f'"{AGAIN}", "{STOP}", or an amount in words such as "{example}"'
    question = _question(state, "budget", describe_overrun(over), told)
    question["options"], question["amounts"] = [AGAIN, STOP], [over.measure]
    return question


def _question(
    state: State, about: Literal["budget", "steps", "stop"], why: str, told: str
) -> Question:
    phase = state.plan.current if state.plan else None
    number = sum(step.kind == "pause" for step in state.steps)
    return Question(
        type="question",
        kind="clarification" if about == "stop" else "budget",
        id=f"{state.task_id}:{phase or 'task'}:{about}:{number}",
        question=f"{why} How does it go on?",
        context=with_changed_tests(told, state),
        deadline=None,
    )


GO_ON: Final = "go on"


def _apply_stop_decision(state: State, answer: str, context: Context) -> Update:
    said = answer.strip()
    stop, number = says_stop(said, "no"), sum(step.kind == "pause" for step in state.steps)
    update: Update = {
        "overrun": None,
        "steps": record_step(state, "pause", at=context.now(), ok=not stop),
        "messages": [HumanMessage(said, id=f"{state.task_id}:stop:{number}")],
    }
    if not stop:
        return update
    why = Failure(code="stopped", node="pause", message="a person stopped the task")
    return {**update, "failure": why}


def _question_of_steps(state: State) -> Question:
    red = state.verification and not state.verification.passed
    said = f"\n\n{excerpt(state.verification)}" if red and state.verification else ""
    why = "The checks are still red" if said else "There is no answer yet"
    spent = f"{why}, and {budget.bounding_setting(state)} is used up."
    told = f'"{GO_ON}" for as many steps once more, "{STOP}", or what to do differently{said}'
    return _question(state, "steps", spent, told)


def _apply_steps_decision(state: State, answer: str, over: Overrun, context: Context) -> Update:
    """Grant every quota of steps once more, with what a person wants done, or stop (RE-03a)."""
    said = answer.strip()
    stop = says_stop(said, "no")
    more = 0 if stop or state.task is None else state.task.limits.think
    context.emit(
        BudgetSettled(
            node=over.node, scope=over.scope, measure="steps", more=float(more), stopped=stop
        )
    )
    grant = Grant(node=over.node, scope=over.scope, more=Amounts(), stopped=stop, steps=True)
    step = record_step(state, "pause", at=context.now(), ok=not stop, grant=grant)
    update: Update = {"overrun": None, "steps": step}
    if stop or said.lower() == GO_ON:
        return update
    number = sum(step.kind == "pause" for step in state.steps)
    return {**update, "messages": [HumanMessage(said, id=f"{state.task_id}:pause:{number}")]}


def apply_decision(state: State, answer: str, context: Context) -> Update:
    """Put on record what was said: what is granted counts from then on, or the work ends there.

    Work that no check has seen yet is verified first, where only a model call is out of reach
    (BU-01).
    """
    over = spent_limit(state)
    if over.measure == "steps":
        return _apply_steps_decision(state, answer, over, context)
    if over.measure == "stop":
        return _apply_stop_decision(state, answer, context)
    given = _limit_of(state, over)
    enough = given * ((over.spent - over.limit) // given + 1)  # as one call may spend all of it
    more = read_grant(answer, over.measure, enough)
    grant = Grant(node=over.node, scope=over.scope, more=more or Amounts(), stopped=more is None)
    context.emit(
        BudgetSettled(
            node=over.node,
            scope=over.scope,
            measure=over.measure,
            more=(more.of(over.measure) or 0.0) if more else 0.0,
            stopped=grant.stopped,
        )
    )
    step = record_step(state, "pause", at=context.now(), ok=not grant.stopped, grant=grant)
    update: Update = {"overrun": None, "steps": step}
    verifies = over.node == "main" and state.task is not None and state.task.verify
    verifies_first = verifies and budget.can_verify(state) and has_unchecked_work(state)
    if not grant.stopped or state.failure or verifies_first:
        return update
    return {
        **update,
        "failure": Failure(code="budget_exceeded", node=over.node, message=describe_overrun(over)),
    }


def _limit_of(state: State, over: Overrun) -> float:
    if state.task is None or over.measure == "steps" or over.measure == "stop":  # noqa: PLR1714
        return over.limit
    limits = state.task.limits
    given = limits.spend if over.scope == "task" else limits.spend_in_phase
    return (given.of(over.measure) if given else None) or over.limit


# --- Ask what becomes of work whose budget is spent: more of it, or an end (BU-04).


async def pause(state: State, context: Context) -> Update:
    """Ask; where the settings say to stop, or nobody can be asked, it stops without a question."""
    if not asks_person(state, context):
        return apply_decision(state, STOP, context)
    question = question_of(state)
    reply: Answer = ask_person(question, context.now(), context.emit)
    return apply_decision(state, reply.answer, context)
