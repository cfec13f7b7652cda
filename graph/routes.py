"""Routers: each reads the state and names an outcome. Pure; none knows a node.

Outcomes complete the sentence "the work was ..." or name what comes; ``machine.TABLE`` sends them
on.
"""

from typing import Literal

from daruma.state import budget
from daruma.state import plan as phases
from daruma.state.calls import calls_to_run, is_open, with_status
from daruma.state.channels import State
from daruma.state.failure import DONE
from daruma.state.mode import KEEP_WORKING
from daruma.state.outcome import gave_up_asking, is_planned_anew, waits, work_status
from daruma.state.plan import Plan
from daruma.state.steering import goes_on
from daruma.state.steps import Asking, Paying

Onward = Literal["next", "completed", "unstructured", "replan", "failed"]
Recovered = Literal[
    "retried",
    "replanned",
    "rechecked",
    "act",
    "delegated",
    "broken",
    "gated",
    "answered",
    "exhausted",
    "hopeless",
]

OnTheirWay = Literal["act", "delegated", "gated", "answered"]
Paid = Literal["answerable", "plannable", "reflectable", "checkable", "recoverable", "structurable"]
_PAID: dict[Paying, Paid] = {
    "main": "answerable",
    "plan": "plannable",
    "reflect": "reflectable",
    "verify": "checkable",
    "recovery": "recoverable",
    "structure": "structurable",
}
_NOW: dict[Asking, Literal["answerable", "plannable", "reflectable"]] = {
    "main": "answerable",
    "plan": "plannable",
    "reflect": "reflectable",
}


def after_intake(state: State) -> Literal["planned", "direct", "refused"]:
    if state.failure:
        return "refused"
    return "planned" if state.task and state.task.mode in KEEP_WORKING else "direct"


def after_plan(
    state: State,
) -> Literal[
    "looks", "looked", "proposed", "accepted", "unusable", "hopeless", "failed", "crowded", "spent"
]:
    if state.overrun:
        return "spent"
    if state.crowded:
        return "crowded"
    if state.failure:
        endings = ("plan_refused", "plan_rejected")
        overcome = state.failure.code not in endings and budget.can_recover(state)
        return "failed" if overcome else "hopeless"
    if state.calls:
        return "looks" if with_status(state.calls, "ready") else "looked"
    if not _is_new(state.plan):
        return "hopeless" if state.plan and budget.gave_up_planning(state) else "unusable"
    return "proposed" if state.task and state.task.review else "accepted"


def _is_new(plan: Plan | None) -> bool:
    """Whether a plan is one to be carried out, and none whose rest is to be planned anew."""
    return plan is not None and phases.first_failed(plan) is None


def after_spec_review(state: State) -> Literal["confirmed", "rejected", "parked"]:
    if state.plan is None or not _is_new(state.plan):
        return "rejected"
    return "parked" if state.plan.parked else "confirmed"


def after_begin(state: State) -> Literal["begun", "shared", "refused"]:
    if state.failure:
        return "refused"
    return "shared" if state.task and state.task.mode == "team_collab" else "begun"


def after_member(_: object) -> Literal["reported"]:
    """Members report each for itself, so all of them must go the same way."""
    return "reported"


def after_merge(state: State) -> Literal[Onward, "answered"]:
    if any(call.delegated for call in state.calls):  # in a team no calls are the task's own
        return "answered"
    return _onward(state) if state.plan and state.failure is None else "failed"


def after_main(
    state: State,
) -> Literal[
    "act",
    "delegated",
    "broken",
    "gated",
    "answered",
    "asked",
    "unclear",
    "candidate",
    "completed",
    "final",
    "failed",
    "fatal",
    "crowded",
    "spent",
]:
    if state.overrun:
        return "spent"
    if state.crowded:
        return "crowded"
    if state.failure:
        overcome = budget.can_recover(state) and not gave_up_asking(state)
        contradicted = state.failure.code == "plan_contradicted"
        return "failed" if overcome and not contradicted else "fatal"
    if waits(state) and not is_open(state.calls):
        return "asked" if state.plan is None else "unclear"
    return _called(state) if state.calls else _said(state)


def after_compress(state: State) -> Literal["answerable", "plannable", "reflectable", "fatal"]:
    if state.steps and state.steps[-1].signature == budget.GAVE_UP:
        return "plannable"  # where it ends
    if state.failure or state.compaction is None:
        return "fatal"
    return _NOW[state.compaction.asked_by]


def after_repair(state: State) -> Literal["broken", OnTheirWay]:
    return _called(state)


def after_gate(state: State) -> Literal["blocked", OnTheirWay]:
    return "blocked" if state.failure else _on_their_way(state)


def after_tool(_: object) -> Literal["answered"]:
    """Siblings route each for itself, so all of them must go the same way."""
    return "answered"


def after_look(_: object) -> Literal["looked"]:
    """Siblings go the same way here too."""
    return "looked"


def after_delegate(state: State) -> Literal["shared", "answered"]:
    return "shared" if calls_to_run(state.calls, delegated=True) else "answered"


def after_clarify(_: State) -> Literal["answered"]:
    return "answered"


def after_verify(
    state: State,
) -> Literal["passed", "rejected", "returned", "exhausted", "failed", "spent"]:
    if state.overrun:
        return "spent"
    if state.failure:
        return "failed" if budget.can_recover(state) else "exhausted"
    if goes_on(state):
        return "returned"
    if state.verification and state.verification.passed:
        return "passed"
    if not budget.can_go_on(state):
        return "exhausted"
    return "returned" if budget.can_reinject(state) else "rejected"  # put back first (VE-03)


def after_reflect(state: State) -> Literal["learned", "crowded", "spent"]:
    if state.overrun:
        return "spent"
    return "crowded" if state.crowded else "learned"


def after_recovery(state: State) -> Literal["unsure", "spent", Recovered]:
    if state.overrun:
        return "spent"
    return "unsure" if state.action else after_consult(state)


def after_consult(state: State) -> Recovered:
    origin = state.origin.node if state.origin else ""
    if state.failure:
        return "hopeless" if origin == "plan" else "exhausted"
    if state.calls:
        return _called(state)
    if origin == "plan":
        return "replanned"
    last = state.steps[-1].recovery if state.steps else None
    again = last is not None and last.strategy == "retry" and last.carried in DONE
    return "rechecked" if origin == "verify" and again else "retried"


def after_pause(state: State) -> Literal[Paid, "stopped", "hopeless"]:
    grant = state.steps[-1].grant if state.steps else None
    if grant is None:  # it stood still for a person, and no budget is spent
        return "stopped" if state.failure else "answerable"
    if grant.steps:  # steps are what the model is to go on with
        checked = grant.node == "main" and is_checked_next(state)
        return "answerable" if not grant.stopped else "checkable" if checked else "stopped"
    if not grant.stopped:
        return _PAID[grant.node]
    if state.failure is None:
        return "checkable"
    if grant.node == "structure":  # all phases are closed
        return "hopeless"
    return "stopped" if state.plan or grant.node != "plan" else "hopeless"


def after_settle(state: State) -> Literal[Onward, "steered", "undone"]:
    closed = state.plan.phase(state.plan.current) if state.plan else None
    if goes_on(state) and (closed is None or closed.status == "running"):
        return "steered"
    if state.plan is None:
        return _completed(state) if work_status(state) == "completed" else "failed"
    if closed and phases.to_undo(closed):
        return "undone"
    return _onward(state)


def after_structure(state: State) -> Literal["structured", "again", "failed", "spent"]:
    if state.overrun:
        return "spent"
    if state.failure:
        return "failed"
    return "again" if _completed(state) == "unstructured" else "structured"


def after_rollback(state: State) -> Literal["next", "replan", "failed"]:
    if state.failure or state.plan is None:
        return "failed"
    onward = _onward(state)
    return onward if onward in ("next", "replan") else "failed"


def after_emergency(_: State) -> Literal["stated"]:
    return "stated"


def after_finish(state: State) -> Literal["ended", "held", "steered"]:
    if state.plan is None and goes_on(state):
        return "steered"
    return "held" if state.failure and state.failure.code == "rollback_failed" else "ended"


def after_hold(state: State) -> Literal["again", "next", "failed"]:
    if state.failure or state.plan is None:
        return "again"
    return "next" if _onward(state) == "next" else "failed"


def _said(state: State) -> Literal["candidate", "completed", "final"]:
    if is_checked_next(state):
        return "candidate"
    # Without a plan there is no phase to close.
    ended = state.plan is None and work_status(state) == "completed"
    return "completed" if ended and _completed(state) == "completed" else "final"


def _completed(state: State) -> Literal["completed", "unstructured"]:
    """Tell whether completed work still lacks the structure that was asked for (FA-10)."""
    wanted = state.structured
    return "unstructured" if wanted and wanted.value is None else "completed"


def is_checked_next(state: State) -> bool:
    """Whether the checks have still to say something of the work."""
    return state.task is not None and state.task.verify and budget.can_verify(state)


def _called(state: State) -> Literal["broken", OnTheirWay]:
    return "broken" if with_status(state.calls, "repairable") else _on_their_way(state)


def _on_their_way(state: State) -> OnTheirWay:
    """Run what may run before a person is asked about the rest (TL-02); helpers come last.

    They begin from what the calls beside theirs have left (PL-08).
    """
    if ready := with_status(state.calls, "ready"):
        return "delegated" if all(call.delegated for call in ready) else "act"
    return "gated" if with_status(state.calls, "awaiting") else "answered"


def _onward(state: State) -> Onward:
    plan = state.plan
    if plan is None or any(phase.outcome in ("blocked", "cancelled") for phase in plan.phases):
        return "failed"
    anew = is_planned_anew(state)
    if phases.ready(plan) and not (anew and phases.is_contradicted(plan)):
        return "next"
    if phases.first_failed(plan):
        return "replan" if anew else "failed"
    return _completed(state)
