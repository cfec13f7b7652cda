"""Ask a person about the calls that need one: one question for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from daruma.state.calls import ToolTask, with_status
from daruma.state.channels import State, Update
from daruma.state.events import ApprovalCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import Decision, Decisions, approval_request
from daruma.tools.calls.approvals import (
    OpenApproval,
    after_decision,
    asked_of_people,
    blocking,
    denial,
    open_approvals,
)
from daruma.tools.calls.resolve import failed
from daruma.tools.calls.results import tool_result
from daruma.tools.calls.visible import offer_of
from daruma.tools.context import Context
from daruma.tools.verification import changed_tests_note

MAX_VOIDED: Final = 3
"""Answers to one call that a changing workspace may void; then it fails, and is not asked again."""


async def gate(state: State, context: Context) -> Update:
    """Ask for the open approvals and note each decision; what stays open is asked again.

    What the approvals rest on is looked at again once the answer is there: a yes to what has
    changed since is void, and the call is asked about anew. So is a yes that waited here for the
    decision on another call, and an edit that does not fit the tool.
    """
    workspace = state.task.workspace if state.task else None
    waiting = [call for call in state.calls if _undecided(call)]
    opened, hopeless = await open_approvals(waiting, workspace, context)
    after = [failed(call, hopeless[call.id]) for call in waiting if call.id in hopeless]
    opened = [each for each in opened if not each.stands]
    decisions = _asked(opened, context.now(), changed_tests_note(state)) if opened else {}
    offer = offer_of(state.task, context)
    for each in (each for each in opened if each.call.id in decisions):
        decision = decisions[each.call.id]
        decided = (
            after_decision(each, decision, offer) if each.holds(decision) else _voided(each.call)
        )
        told = "void" if decided.status == "awaiting" else decision.decision
        context.emit(ApprovalCompleted(approval_id=each.call.id, decision=told))
        after.append(decided)
    late = (each.call for each in opened if each.call.approved and each.call.id not in decisions)
    after += map(_voided, late)
    return _noted(state, after, decisions)


def _undecided(call: ToolTask) -> bool:
    """Whether it may have to be asked about; what was agreed to waits for the others here."""
    return call.status == "awaiting" or (call.status == "ready" and bool(call.approved))


def _asked(opened: Sequence[OpenApproval], at: float, told: str) -> dict[str, Decision]:
    question = approval_request(tuple(each.approval for each in opened), None, told)
    reply = Decisions.model_validate(asked_of_people(question, at))
    return {decision.approval_id: decision for decision in reply.decisions}


def _voided(call: ToolTask) -> ToolTask:
    if call.voided + 1 >= MAX_VOIDED:
        return failed(
            call, "not run: what was approved changed again and again before it could run"
        )
    return replace(call, status="awaiting", approved="", voided=call.voided + 1)


def _noted(state: State, after: Sequence[ToolTask], decisions: Mapping[str, Decision]) -> Update:
    by_id = {call.id: call for call in after}
    denied = with_status(after, "rejected")
    told = [(call, call.reason) for call in with_status(after, "failed")]
    told += [(call, denial(decisions[call.id])) for call in denied]
    return {
        "calls": tuple(by_id.get(call.id, call) for call in state.calls),
        "messages": [tool_result(call, text, ok=False) for call, text in told],
        "failure": _block(denied),
    }


def _block(denied: Sequence[ToolTask]) -> Failure | None:
    message = blocking(denied)
    return Failure(code="approval_denied", node="gate", message=message) if message else None
