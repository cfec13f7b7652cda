"""Ask a person about the calls that need one: one question for all of them."""

from collections.abc import Mapping, Sequence

from daruma.state.calls import ToolTask, with_status
from daruma.state.channels import State, Update
from daruma.state.events import ApprovalCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import Decision, Decisions, approval_request, ask_person
from daruma.tools.calls import (
    OpenApproval,
    blocking_denial,
    denial_text,
    open_approvals,
    tool_result,
)
from daruma.tools.context import Context, visible_tools
from daruma.tools.verification import changed_tests_note


async def gate(state: State, context: Context) -> Update:
    """Ask for the open approvals and note each decision; what stays open is asked again.

    It is asked once all that may run has run, and what is approved does not wait for the rest
    (TL-02). What the approvals rest on is looked at again once the answer is there (TL-13a): a yes
    to what has changed since is void, and the call is asked about anew, with the difference. So is
    an edit that does not fit the tool.
    """
    workspace = state.task.workspace if state.task else None
    opened = await open_approvals(
        state.calls, workspace, context.tools, context.open_sandbox, context.outputs
    )
    after, asked = [*opened.failed], opened.approvals
    decisions = _ask_people(asked, context, changed_tests_note(state)) if asked else {}
    offer = visible_tools(state.task, context, messages=state.messages)
    for each in (each for each in asked if each.call.id in decisions):
        decision = decisions[each.call.id]
        decided = await opened.decide(each, decision, offer)
        told = "void" if decided.status == "awaiting" else decision.decision
        context.emit(ApprovalCompleted(approval_id=each.call.id, decision=told))
        after.append(decided)
    return _decision_update(state, after, decisions)


def _ask_people(opened: Sequence[OpenApproval], context: Context, told: str) -> dict[str, Decision]:
    question = approval_request(tuple(each.approval for each in opened), None, told)
    reply: Decisions = ask_person(question, context.now(), context.emit)
    return {decision.approval_id: decision for decision in reply.decisions}


def _decision_update(
    state: State, after: Sequence[ToolTask], decisions: Mapping[str, Decision]
) -> Update:
    by_id = {call.id: call for call in after}
    denied = with_status(after, "rejected")
    told = [(call, call.reason) for call in with_status(after, "failed")]
    told += [(call, denial_text(decisions[call.id])) for call in denied]
    return {
        "calls": tuple(by_id.get(call.id, call) for call in state.calls),
        "messages": [tool_result(call, text, ok=False) for call, text in told],
        "failure": _blocking_failure(denied),
    }


def _blocking_failure(denied: Sequence[ToolTask]) -> Failure | None:
    message = blocking_denial(denied)
    return Failure(code="approval_denied", node="gate", message=message) if message else None
