"""Actions against a failure: choosing one, asking a person, carrying it out, recording it."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage

from daruma.state import budget
from daruma.state.budget import MAX_TOOL_RETRIES, record_step, retries, retries_of
from daruma.state.calls import with_status
from daruma.state.channels import State, Update
from daruma.state.events import AnswerAudited, RecoveryChosen, RecoveryCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import Answer, Approve, Deny, Instruct, Question, RecoveryRequest
from daruma.state.recovery import DONE, Assent, Carried, Recovered, RecoveryAction, Strategy
from daruma.state.settings import Recovery
from daruma.tools.calls import audit_answer, resolve_calls, tool_result
from daruma.tools.context import Context, offer_of
from daruma.tools.verification import with_changed_tests

# --- Which action against a failure may be taken, and whether a person is asked first. Pure.

_AGAIN = ("retry", "parameter-adjustment")


def give_up_reason(state: State, failure: Failure) -> str:
    """Say why nothing more can be tried against a failure; empty if something can (RE-07)."""
    limit = state.task.limits.recoveries if state.task else 0
    if failure.final:
        return "trying again can not help"
    if budget.recoveries(state, failure) >= limit:
        return "it came again after it had been dealt with" if limit else "recovery is switched off"
    if not _room(state, failure):
        return "the budget is spent"
    return ""


def action_by_rule(state: State, failure: Failure) -> RecoveryAction:
    """Return RE-05's action: adjust after a first failure, ask a person after a repeated one."""
    if why := give_up_reason(state, failure):
        return RecoveryAction(strategy="give-up", reasoning=why, confidence=1.0, by="rule")
    again = budget.recoveries(state, failure) > 0
    strategy: Strategy = "escalate" if again else "parameter-adjustment"
    return RecoveryAction(strategy=strategy, confidence=1.0, by="rule")


def allowed_action(
    action: RecoveryAction, state: State, failure: Failure, names: Collection[str]
) -> RecoveryAction:
    """Return an action, or what comes next to it where it can not be taken.

    ``names`` are the tools that are shown. A tool is tried again ``MAX_TOOL_RETRIES`` times, then
    another has to be chosen (RE-07); without any other, a person. A plan calls no tools.
    """
    if failure.node == "plan" and action.strategy in ("alternative-tool", "parameter-adjustment"):
        action = replace(action, strategy="parameter-adjustment", tool_name=None, parameters=None)
    if action.strategy == "alternative-tool" and not hides(action, failure, names):
        action = replace(action, strategy="parameter-adjustment", tool_name=None, parameters=None)
    again = action.strategy in _AGAIN and tool_of(action, failure)
    if again and retries_of(state, again) >= MAX_TOOL_RETRIES:
        other = replace(action, strategy="alternative-tool", tool_name=None, parameters=None)
        action = other if hides(other, failure, names) else replace(other, strategy="escalate")
    if action.strategy == "alternative-tool" and action.tool_name not in names:
        action = replace(action, tool_name=None)
    return action


def tool_of(action: RecoveryAction, failure: Failure) -> str:
    """Return the tool that an action has tried again; empty if none."""
    if action.strategy not in _AGAIN:
        return ""
    return action.tool_name or failure.tool


def hides(action: RecoveryAction, failure: Failure, names: Collection[str]) -> str:
    """Return the tool that an action hides: the one that failed, if there is any other."""
    if action.strategy != "alternative-tool" or action.tool_name == failure.tool:
        return ""
    return failure.tool if failure.tool in names and len(names) > 1 else ""


def with_assent(action: RecoveryAction, settings: Recovery) -> RecoveryAction:
    """Return an action with what a person is asked before it: by how sure it is (RE-06).

    To escalate is to ask, whatever the confidence.
    """
    if action.strategy == "escalate":
        return replace(action, assent="question")
    if action.confidence >= settings.execute_above:
        return replace(action, assent="")
    asked: Assent = "approval" if action.confidence >= settings.ask_above else "question"
    return replace(action, assent=asked)


def _room(state: State, failure: Failure) -> bool:
    if failure.node == "plan":
        return budget.can_plan(state)
    verified = failure.node != "verify" or budget.can_verify(state)
    return verified and budget.can_think(state)


# --- What is put on record of a recovery, and told of it.

LONGEST_REASONING: Final = 300
"""Characters of an action's reasoning that stay on record."""


def recovered(
    action: RecoveryAction, failure: Failure, carried: Carried, names: Collection[str]
) -> Recovered:
    """Return the record of an action; ``names`` are the tools that are shown."""
    done = carried in DONE
    return Recovered(
        code=failure.code,
        strategy=action.strategy,
        by=action.by,
        carried=carried,
        confidence=action.confidence,
        tool=tool_of(action, failure) if done else "",
        hides=hides(action, failure, names) if done else "",
        instead=(action.tool_name or "") if done and action.strategy == "alternative-tool" else "",
        reasoning=action.reasoning[:LONGEST_REASONING],
    )


@contextmanager
def close_on_bug(context: Context) -> Iterator[None]:
    """Close what recovery has opened when a bug ends it: nobody else will (PL-04)."""
    try:
        yield
    except Exception:
        context.emit(RecoveryCompleted(strategy="give-up", carried="failed"))
        raise


# --- Carrying out an action against a failure: what the state becomes. Nothing here can fail.

LONGEST_WAIT = 60.0
"""Seconds that a retry waits at most, however often it was tried."""


@dataclass(frozen=True)
class RecoveryCase:
    """A failure that is being dealt with; ``message_id`` is that of what is said about it."""

    state: State
    failure: Failure
    message_id: str


async def carried_out(case: RecoveryCase, action: RecoveryAction, context: Context) -> Update:
    """Do what an action says, but for giving up, which leaves the failure where it is."""
    if action.strategy == "give-up":
        return left_open(case)
    if action.strategy == "retry":
        await context.sleep(wait(case.state, context.settings.fallback_chain.recovery.wait_seconds))
        if case.failure.unanswered or case.failure.node == "verify":
            return closed(case, "")  # no model is told: none was heard, or none is asked again
    given = action.tool_name and action.parameters is not None
    if action.strategy == "parameter-adjustment" and given:
        return _called(case, action, context)
    return closed(case, advice(case.failure, action))


def closed(case: RecoveryCase, said: str) -> Update:
    """Close the failure and go on, with what the model is told about it."""
    origin = case.state.origin or case.failure
    told = [HumanMessage(said, id=case.message_id)] if said else []
    return {"failure": None, "origin": origin, "action": None, "calls": (), "messages": [*told]}


def left_open(case: RecoveryCase, said: str = "") -> Update:
    """Leave the failure open, under the code of the first one (EM-04), with what was said of it."""
    update: Update = {"origin": case.state.origin or case.failure, "action": None}
    return update | {"messages": [HumanMessage(said, id=case.message_id)]} if said else update


def wait(state: State, seconds: float) -> float:
    """Return how long a retry waits: twice as long each time, at most ``LONGEST_WAIT``."""
    doubled: float = seconds * 2 ** min(retries(state), 10)
    return min(doubled, LONGEST_WAIT)


def advice(failure: Failure, action: RecoveryAction) -> str:
    """Say to the model what failed and how to go on."""
    how = {
        "retry": "Try again.",
        "alternative-tool": f"The tool {failure.tool} is not there for the next step: "
        + (f"use {action.tool_name}." if action.tool_name else "use another one."),
    }.get(action.strategy, "Go on another way.")
    return " ".join(
        filter(None, (f"The last step failed: {failure.message}.", how, action.reasoning))
    )


def _called(case: RecoveryCase, action: RecoveryAction, context: Context) -> Update:
    """Make the corrected call: it goes through the same gate as any call of the model."""
    # Providers refuse long ids; results are told apart by the message's id as well.
    call = {"name": action.tool_name, "args": action.parameters, "id": "call_0"}
    message = AIMessage(action.reasoning, tool_calls=[call], id=case.message_id)
    calls = resolve_calls(message, offer_of(case.state.task, context, messages=case.state.messages))
    audit = audit_answer(case.message_id, calls)
    if audit:
        context.emit(AnswerAudited(audit=audit.to_dict()))
    failed = [tool_result(each, each.reason, ok=False) for each in with_status(calls, "failed")]
    return closed(case, "") | {"messages": [message, *failed], "calls": calls}


# --- What a person is asked about a failure, and what becomes of the reply.

WHAT = "A step failed. What should be done?"


def question_of(state: State) -> RecoveryRequest | Question:
    """Build the question: for approval of the action, or for an answer of the person's own."""
    failure, action = _at_hand(state)
    if action.assent == "approval":
        return RecoveryRequest(
            type="recovery_request",
            id=_id(state),
            failure=with_changed_tests(failure.message, state),
            action=action.to_dict(),
            deadline=None,
        )
    return Question(
        type="question",
        id=_id(state),
        question=action.escalation_message or WHAT,
        context=with_changed_tests(failure.message, state),
        deadline=None,
    )


async def apply_reply(state: State, reply: object, context: Context) -> Update:
    """Do what a reply says, in the typed form of :mod:`daruma.state.interrupts`."""
    failure, action = _at_hand(state)
    at = context.now()
    carried, update = await _decided(
        RecoveryCase(state, failure, _id(state)), action, reply, context
    )
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
    case: RecoveryCase, action: RecoveryAction, reply: object, context: Context
) -> tuple[Carried, Update]:
    if isinstance(reply, Approve):
        return "approved", await carried_out(case, action, context)
    if isinstance(reply, Answer):
        return "answered", closed(case, reply.answer)
    if isinstance(reply, Instruct):
        return "instructed", closed(case, reply.text)
    reason = reply.reason if isinstance(reply, Deny) else ""
    return "denied", left_open(case, f"A person denied this: {reason}" if reason else "")


# --- Seeing an action through: it is told, and done, looked at only, or left to a person.


def give_up(case: RecoveryCase, action: RecoveryAction, context: Context) -> Update:
    """Give up, which nobody has to agree to: there is nothing left to try."""
    _tell(action, context)
    context.emit(RecoveryCompleted(strategy=action.strategy))
    return left_open(case)


async def carry_out_action(
    case: RecoveryCase, action: RecoveryAction, context: Context
) -> tuple[Update, Recovered | None]:
    """Do an action, or only look on, or leave it to a person: then nothing is on record yet."""
    settings = context.settings.fallback_chain.recovery
    names = offer_of(case.state.task, context).names
    action = with_assent(action, settings)
    _tell(action, context)
    if action.assent and not settings.observe_only:
        return {"action": action, "origin": case.state.origin or case.failure}, None
    update = left_open(case)
    if not settings.observe_only:
        update = await carried_out(case, action, context)
    carried: Carried = "observed" if settings.observe_only else "executed"
    context.emit(RecoveryCompleted(strategy=action.strategy, carried=carried))
    return update, recovered(action, case.failure, carried, names)


def _tell(action: RecoveryAction, context: Context) -> None:
    context.emit(
        RecoveryChosen(
            strategy=action.strategy,
            reasoning=action.reasoning,
            confidence=action.confidence,
            by=action.by,
            tool_name=action.tool_name,
            parameters=action.parameters,
        )
    )
