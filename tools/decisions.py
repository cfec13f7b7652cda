"""What becomes of a call by a person's decision on it. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from daruma.state.interrupts import Decision
from daruma.state.tool_task import ToolTask, moved
from daruma.tools.offer import Offer
from daruma.tools.open_approvals import OpenApproval
from daruma.tools.resolution import with_arguments


def after_decision(asked: OpenApproval, decision: Decision, offer: Offer) -> ToolTask:
    """Return the call as it is after a decision; an edit that does not fit decides nothing yet."""
    if decision.decision == "deny":
        return moved(asked.call, "rejected")
    if decision.args is None:
        return asked.agreed(asked.call)
    edited = with_arguments(asked.call, decision.args, offer)
    if edited.problem:  # it is the person's mistake, not the model's: nothing is decided yet
        return replace(asked.call, reason=f"the edit can not be used: {edited.reason}")
    # What a person wrote needs no other yes, unless it became a call of another tool.
    own = edited.name == asked.call.name and edited.status != "failed"
    return asked.agreed(edited) if own else edited


def denial(decision: Decision) -> str:
    """Return what the model is told of a call that a person denied."""
    return f"A person denied this call: {decision.reason or 'no reason given'}"


def blocking(denied: Iterable[ToolTask]) -> str | None:
    """Return why denied calls stop the whole task; None where it goes on without them (TL-15)."""
    for call in denied:
        if call.required and call.deny_effect == "block":
            return f"a required approval was denied: {call.name}"
    return None
