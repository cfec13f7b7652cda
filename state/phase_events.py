"""Telling that a phase failed, and what fell with it."""

from daruma.state.events import PhaseFailed
from daruma.state.plan import Plan


def phase_failed(before: Plan, after: Plan) -> PhaseFailed:
    """Build the event for the current phase, which ``after`` shows as failed."""
    phase = after.phase(after.current)
    pending = {other.id for other in before.phases if other.status == "pending"}
    return PhaseFailed(
        phase_id=phase.id if phase else "",
        outcome=phase.outcome or "failed" if phase else "failed",
        reason=phase.failure.message if phase and phase.failure else "",
        fallen=tuple(p.id for p in after.phases if p.id in pending and p.status == "failed"),
    )
