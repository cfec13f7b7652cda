"""Ask a person what is to be done about a failure, or whether recovery may do what it would."""

from langgraph.types import interrupt

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import RecoveryCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import (
    Answer,
    Approve,
    Instruct,
    Question,
    RecoveryRequest,
    read_reply,
)
from daruma.state.recording import record_step
from daruma.state.recovery import Carried, RecoveryAction
from daruma.tools.context import Context
from daruma.tools.offer import offer_of
from daruma.tools.recovery.carrying_out import Case, carried_out, closed, left_open
from daruma.tools.recovery.recording import closed_on_bug, recovered

WHAT = "A step failed. What should be done?"


async def consult(state: State, context: Context) -> Update:
    """Ask, and do what was answered: the action, what the person says in its place, or nothing."""
    question = question_of(state)
    reply = read_reply(question, interrupt(question))
    with closed_on_bug(context):
        return await answered(state, reply, context)


async def answered(state: State, reply: object, context: Context) -> Update:
    """Do what a reply of :mod:`daruma.state.interrupts` says."""
    failure, action = at_hand(state)
    at = context.now()
    carried, update = await _replied(Case(state, failure, _id(state)), action, reply, context)
    note = recovered(action, failure, carried, offer_of(state.task, context).names)
    context.emit(RecoveryCompleted(strategy=action.strategy, carried=carried))
    step = record_step(
        state,
        "consult",
        at=at,
        seconds=context.now() - at,
        signature=failure.signature,
        recovery=note,
    )
    return update | {"steps": step}


def question_of(state: State) -> RecoveryRequest | Question:
    """Build the question: for approval of the action, or for an answer of the person's own."""
    failure, action = at_hand(state)
    if action.assent == "approval":
        return RecoveryRequest(
            type="recovery_request",
            id=_id(state),
            failure=failure.message,
            action=action.to_dict(),
            deadline=None,
        )
    return Question(
        type="question",
        id=_id(state),
        question=action.escalation_message or WHAT,
        context=failure.message,
        deadline=None,
    )


def _id(state: State) -> str:
    return f"{state.task_id}:consult:{budget.spent(budget.of_task(state), 'consult')}"


def at_hand(state: State) -> tuple[Failure, RecoveryAction]:
    """Return the failure and the action that a person is asked about."""
    if state.failure is None or state.action is None:
        raise LookupError("there is no recovery to ask about")
    return state.failure, state.action


async def _replied(
    case: Case, action: RecoveryAction, reply: object, context: Context
) -> tuple[Carried, Update]:
    if isinstance(reply, Approve):
        return "approved", await carried_out(case, action, context)
    if isinstance(reply, Answer):
        return "answered", closed(case, reply.answer)
    if isinstance(reply, Instruct):
        return "instructed", closed(case, reply.text)
    return "denied", left_open(case)
