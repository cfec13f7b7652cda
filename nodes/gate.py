"""Ask a person about the calls that need one: one question for all of them."""

from collections.abc import Mapping, Sequence
from typing import Final

from daruma.state.calls import Allowance, ToolTask, keep_allowance, with_status
from daruma.state.channels import State, Update
from daruma.state.events import ApprovalCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import Decision, Decisions, Scope, approval_request, ask_person
from daruma.tools.calls import (
    Opened,
    allowances_in_force,
    blocking_denial,
    denial_text,
    open_approvals,
    tool_result,
)
from daruma.tools.context import Context, visible_tools
from daruma.tools.hooks import refuse
from daruma.tools.threads import in_thread
from daruma.tools.verification import changed_tests_note


async def gate(state: State, context: Context) -> Update:
    """Ask for the open approvals and note each decision; what stays open is asked again.

    It is asked once all that may run has run, and what is approved does not wait for the rest
    (TL-02). What the approvals rest on is looked at again once the answer is there (TL-13a): a yes
    to what has changed since is void, and the call is asked about anew, with the difference. So is
    an edit that does not fit the tool. What a person has said yes to before is not asked about
    (TL-25).
    """
    workspace = state.task.workspace if state.task else None
    opened = await open_approvals(
        state.calls, workspace, context.tools, context.open_sandbox, context.outputs
    )
    given, damaged = await allowances_in_force(state, context.outputs)
    covered = [(each, found) for each in opened.approvals if (found := each.allowance(given))]
    if covered or not opened.approvals:  # what is allowed waits for no answer to the rest
        for each, found in covered:
            context.emit(
                ApprovalCompleted(approval_id=each.call.id, decision="approve", by=found.id)
            )
        allowed = [each.approve(each.call, found.id) for each, found in covered]
        return _decision_update(state, [*opened.failed, *allowed], {}, context)
    told = "; ".join(filter(None, (changed_tests_note(state), damaged)))
    scopes = _SCOPES[context.settings.tools.always][: 2 if workspace else 1]
    shown = tuple(each.approval for each in opened.approvals)
    question = approval_request(shown, told, scopes)
    reply: Decisions = ask_person(question, context.now(), context.emit)
    return await _carry_out(state, opened, reply, context)


_SCOPES: Final[Mapping[str, tuple[Scope, ...]]] = {
    "never": (),
    "thread": ("thread",),
    "workspace": ("thread", "workspace"),
}


async def _carry_out(state: State, opened: Opened, reply: Decisions, context: Context) -> Update:
    decisions = {decision.approval_id: decision for decision in reply.decisions}
    offer = visible_tools(state.task, context, messages=state.messages)
    after, allowances = [*opened.failed], list[Allowance]()
    for each in (each for each in opened.approvals if each.call.id in decisions):
        decision = decisions[each.call.id]
        decided = await opened.decide(each, decision, offer)
        void = decided.status == "awaiting"
        told = "void" if void else decision.decision
        context.emit(ApprovalCompleted(approval_id=each.call.id, decision=told))
        after.append(decided)
        given = each.always(decision, context.now()) if decision.always and not void else None
        if given and decision.always == "workspace":
            await in_thread(keep_allowance, given)
        elif given:
            allowances.append(given)
    update = _decision_update(state, after, decisions, context)
    if allowances:
        update["allowances"] = (*state.allowances, *allowances)
    return update


def _decision_update(
    state: State, after: Sequence[ToolTask], decisions: Mapping[str, Decision], context: Context
) -> Update:
    by_id = {call.id: call for call in after}
    denied = with_status(after, "rejected")
    why = blocking_denial(denied)
    told = [tool_result(each, denial_text(decisions[each.id]), ok=False) for each in denied]
    return {
        "calls": tuple(by_id.get(call.id, call) for call in state.calls),
        "messages": [*refuse(with_status(after, "failed"), context.emit), *told],
        "failure": Failure(code="approval_denied", node="gate", message=why) if why else None,
    }
