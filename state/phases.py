"""How a plan moves: which phase is next, and what the end of one means for the others."""

from dataclasses import replace
from typing import Any

from daruma.state.failure import Failure
from daruma.state.plan import Phase, Plan
from daruma.state.status import Status
from daruma.state.verification import Verification


def ready(plan: Plan) -> tuple[Phase, ...]:
    """Return the pending phases whose dependencies are all completed, in the plan's order."""
    completed = {phase.id for phase in plan.phases if phase.status == "completed"}
    return tuple(
        phase
        for phase in plan.phases
        if phase.status == "pending" and completed.issuperset(phase.depends_on)
    )


def for_members(plan: Plan, most: int) -> tuple[Phase, ...]:
    """Return the ready phases that members take up now, at most so many.

    What settles a conflict is done alone, so that it meets no other work.
    """
    now = ready(plan)
    settling = [phase for phase in now if phase.settles]
    return tuple(settling[:1]) or now[:most]


def start(plan: Plan, phase_id: str) -> Plan:
    """Mark a phase as running; it is the current one from now on."""
    return replace(_change(plan, phase_id, status="running"), current=phase_id)


def message_id(plan_id: str, phase_id: str) -> str:
    """Return the id of the message that says what a phase is about."""
    return f"{plan_id}:begin:{phase_id}"


def close(
    plan: Plan,
    phase_id: str,
    outcome: Status,
    failure: Failure | None = None,
    verification: Verification | None = None,
) -> Plan:
    """Mark a phase as ended. One that did not complete fails all that depend on it (PL-05)."""
    plan = _change(plan, phase_id, verification=verification)
    if outcome == "completed":
        return _change(plan, phase_id, status="completed", outcome=outcome)
    plan = _change(plan, phase_id, status="failed", outcome=outcome, failure=failure)
    plan = replace(plan, first_failed=plan.first_failed or phase_id)
    for phase in dependents(plan, phase_id):
        if phase.status == "pending":
            plan = _change(plan, phase.id, status="failed", outcome="failed")
    return plan


def dependents(plan: Plan, phase_id: str) -> tuple[Phase, ...]:
    """Return the phases that depend on a phase, directly or through others, in the plan's order."""
    reached = {phase_id}
    grown = True
    while grown:
        more = {phase.id for phase in plan.phases if reached.intersection(phase.depends_on)}
        grown = not more <= reached
        reached |= more
    return tuple(phase for phase in plan.phases if phase.id in reached - {phase_id})


def reopened(plan: Plan) -> Plan:
    """Return a plan whose failed phases are to be done again; what is completed stays so."""
    phases = tuple(
        replace(phase, status="pending", outcome=None, failure=None, verification=None)
        if phase.status == "failed"
        else phase
        for phase in plan.phases
    )
    return replace(plan, phases=phases, current=None, first_failed=None)


def to_undo(phase: Phase) -> bool:
    """Whether an ended phase has to go through validation and rollback (RO-01, RO-02).

    One that never began has nothing to undo; one that is blocked can go on from where it stands.
    """
    began = phase.failure is None or phase.failure.node != "begin"
    asks = phase.rollback_command or phase.rollback or phase.validation_command
    return phase.status == "failed" and phase.outcome != "blocked" and began and bool(asks)


def first_failed(plan: Plan) -> Phase | None:
    """Return the phase whose own failure came first in time, not one that fell with it."""
    return plan.phase(plan.first_failed)


def _change(plan: Plan, phase_id: str, **changes: Any) -> Plan:
    phases = tuple(
        replace(phase, **changes) if phase.id == phase_id else phase for phase in plan.phases
    )
    return replace(plan, phases=phases)
