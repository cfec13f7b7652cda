"""Choose and apply one recovery action after a failure.

For now the action follows from a rule, without a model: adjust after a first failure, ask a person
after a repeated one (RE-05).
"""

from typing import Literal

from langchain_core.messages import HumanMessage
from langgraph.types import interrupt

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import RecoveryChosen, RecoveryCompleted, RecoveryStarted
from daruma.state.failure import Failure
from daruma.state.interrupts import Answer, Question, read_reply
from daruma.state.recording import record_step
from daruma.tools.context import Context

Strategy = Literal["parameter-adjustment", "escalate", "give-up"]


async def recovery(state: State, context: Context) -> Update:
    """Deal with the open failure, or leave it open when it was dealt with often enough."""
    failure = state.failure
    if failure is None:
        raise LookupError("there is no failure to recover from")
    strategy = by_rule(state, failure)
    advice = _advice(state, failure, strategy)
    context.emit(RecoveryStarted(code=failure.code, message=failure.message))
    context.emit(RecoveryChosen(strategy=strategy, reasoning=failure.message))
    context.emit(RecoveryCompleted(strategy=strategy))
    origin = state.origin or failure
    if advice is None:
        return {"origin": origin}
    step = record_step(state, "recover", at=context.now(), signature=failure.signature)
    return {"failure": None, "origin": origin, "messages": [advice], "steps": step}


def by_rule(state: State, failure: Failure) -> Strategy:
    """Name the strategy of RE-05, within the recoveries that one failure may have (RE-07)."""
    tried = budget.recoveries(state, failure.signature)
    again = budget.can_plan(state) if failure.node == "plan" else budget.can_think(state)
    if state.task is None or tried >= state.task.limits.recoveries or not again:
        return "give-up"
    return "escalate" if tried else "parameter-adjustment"


def _advice(state: State, failure: Failure, strategy: Strategy) -> HumanMessage | None:
    if strategy == "give-up":
        return None
    number = budget.spent(state.steps, "recover")
    message_id = f"{state.task.id if state.task else ''}:recovery:{number}"
    if strategy == "parameter-adjustment":
        return HumanMessage(
            f"The last step failed: {failure.message}. Go on another way.", id=message_id
        )
    question = Question(
        type="question",
        id=message_id,
        question="This failed again. What should be done?",
        context=failure.message,
        deadline=None,
    )
    reply: Answer = read_reply(question, interrupt(question))
    return HumanMessage(reply.answer, id=message_id)
