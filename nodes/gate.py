"""Ask a person about the calls that need one: one question for all of them."""

from dataclasses import replace

from langgraph.types import interrupt

from daruma.state.approval import approval_of
from daruma.state.channels import State, Update
from daruma.state.events import ApprovalCompleted
from daruma.state.failure import Failure
from daruma.state.interrupts import Decision, Decisions, approval_request, read_reply
from daruma.state.tool_task import ToolTask, moved, with_status
from daruma.tools.context import Context
from daruma.tools.resolution import decided
from daruma.tools.results import tool_result
from daruma.tools.sandbox.level import SandboxUnavailable


async def gate(state: State, context: Context) -> Update:
    """Ask for the open approvals and note each decision; what stays open is asked again."""
    workspace = state.task.workspace if state.task else None
    waiting = with_status(state.calls, "awaiting")
    levels = {call.id: await _level(call, workspace, context) for call in waiting}
    approvals = tuple(approval_of(call, workspace, sandbox=levels[call.id]) for call in waiting)
    question = approval_request(approvals, None)
    reply: Decisions = read_reply(question, interrupt(question))
    decisions = {decision.approval_id: decision for decision in reply.decisions}
    for approval_id, decision in decisions.items():
        context.emit(ApprovalCompleted(approval_id=approval_id, decision=decision.decision))
    after = tuple(
        _after(call, decisions[call.id], context) for call in waiting if call.id in decisions
    )
    moved_on = {call.id: call for call in after}
    return {
        "calls": tuple(moved_on.get(call.id, call) for call in state.calls),
        "messages": [
            tool_result(call, call.reason, ok=False) for call in after if call.status != "ready"
        ],
        "failure": _block(after),
    }


async def _level(call: ToolTask, workspace: str | None, context: Context) -> str:
    if call.name != "run_command" or workspace is None:
        return "none"
    try:
        return (await context.open_sandbox()).level
    except SandboxUnavailable:
        return "unavailable"  # then it will not run


def _after(call: ToolTask, decision: Decision, context: Context) -> ToolTask:
    if decision.decision == "deny":
        reason = f"A person denied this call: {decision.reason or 'no reason given'}"
        return replace(call, status="rejected", reason=reason)
    if decision.args is None:
        return moved(call, "ready")
    edited = replace(call, args=decision.args)
    settings = context.settings.tools
    checked = decided(edited, context.tools.visible(settings, workspace=True), settings)
    return checked if checked.status == "failed" else moved(edited, "ready")


def _block(after: tuple[ToolTask, ...]) -> Failure | None:
    for call in with_status(after, "rejected"):
        if call.required and call.deny_effect == "block":
            message = f"a required approval was denied: {call.name}"
            return Failure(code="approval_denied", node="gate", message=message)
    return None
