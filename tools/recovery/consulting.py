"""What a person is asked about a failure, and what becomes of the reply."""

from daruma.state import budget
from daruma.state.channels import State, Update
from daruma.state.events import RecoveryCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import Answer, Approve, Deny, Instruct, Question, RecoveryRequest
from daruma.state.recording import record_step
from daruma.state.recovery import Carried, RecoveryAction
from daruma.tools.context import Context
from daruma.tools.offer import offer_of
from daruma.tools.recovery.carrying_out import Case, carried_out, closed, left_open
from daruma.tools.recovery.recording import recovered

WHAT = "A step failed. What should be done?"


def question_of(state: State) -> RecoveryRequest | Question:
    """Build the question: for approval of the action, or for an answer of the person's own."""
    failure, action = _at_hand(state)
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


async def replied(state: State, reply: object, context: Context) -> Update:
    """Do what a reply says, in the typed form of :mod:`daruma.state.interrupts`."""
    failure, action = _at_hand(state)
    at = context.now()
    carried, update = await _decided(Case(state, failure, _id(state)), action, reply, context)
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


def _at_hand(state: State) -> tuple[Failure, RecoveryAction]:
    if state.failure is None or state.action is None:
        raise LookupError("there is no recovery to ask about")
    return state.failure, state.action


def _id(state: State) -> str:
    return f"{state.task_id}:consult:{budget.in_task(state, 'consult')}"


async def _decided(
    case: Case, action: RecoveryAction, reply: object, context: Context
) -> tuple[Carried, Update]:
    if isinstance(reply, Approve):
        return "approved", await carried_out(case, action, context)
    if isinstance(reply, Answer):
        return "answered", closed(case, reply.answer)
    if isinstance(reply, Instruct):
        return "instructed", closed(case, reply.text)
    reason = reply.reason if isinstance(reply, Deny) else ""
    return "denied", left_open(case, f"A person denied this: {reason}" if reason else "")
