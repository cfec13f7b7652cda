"""What a task ends with (MO-07)."""

from typing import Any

from daruma.state.conversation import Clarification
from daruma.state.emergency import EmergencyError
from daruma.state.lessons import Lessons
from daruma.state.plan import Phase
from daruma.state.record import record
from daruma.state.recovery import Recovered
from daruma.state.steps import Audit, ContextCost
from daruma.state.task import Status
from daruma.state.verification import Verification


@record
class TaskResult:
    """The one result of a task.

    ``budgets`` counts the steps spent by kind, ``usage`` sums calls, tokens and US dollars by role,
    ``timings`` holds seconds by kind of step and in ``total``. ``notes`` says what a reader must
    know of how the work was done, ``audit`` what was changed or left out of the model's calls.
    ``sandbox`` is the weakest level that a command ran at, None if none ran. ``recoveries`` are the
    actions that were taken against failures, in order; ``context_cost`` is what was done to keep
    requests within the context. ``clarification`` is what a parked task asks the user for, None
    where it asks nothing. ``lessons`` is what it was given of what earlier tasks taught, None if
    nothing.
    """

    task_id: str
    status: Status
    output: str
    error_message: str | None = None
    error_struct: EmergencyError | None = None
    phases: tuple[Phase, ...] = ()
    verification: Verification | None = None
    budgets: dict[str, int]
    usage: dict[str, dict[str, int | float]]
    timings: dict[str, float]
    notes: tuple[str, ...] = ()
    audit: tuple[Audit, ...] = ()
    sandbox: str | None = None
    recoveries: tuple[Recovered, ...] = ()
    context_cost: tuple[ContextCost, ...] = ()
    clarification: Clarification | None = None
    lessons: Lessons | None = None
    schema_version: int = 1

    @property
    def completed(self) -> bool:
        """Whether the task succeeded; no other status counts as success."""
        return self.status == "completed"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values; of the last three fields and the error only what there is."""
        plain: dict[str, Any] = {
            "task_id": self.task_id,
            "status": self.status,
            "output": self.output,
            "error_message": self.error_message,
            "phases": [phase.to_dict() for phase in self.phases],
            "verification": self.verification.summary if self.verification else None,
            "budgets": self.budgets,
            "usage": self.usage,
            "timings": self.timings,
            "notes": list(self.notes),
            "audit": [audit.to_dict() for audit in self.audit],
            "sandbox": self.sandbox,
            "recoveries": [each.to_dict() for each in self.recoveries],
            "context_cost": [each.to_dict() for each in self.context_cost],
        }
        if self.error_struct:
            plain["error_struct"] = self.error_struct.to_dict()
        if self.clarification:
            plain["clarification"] = self.clarification.to_dict()
        if self.lessons:
            plain["lessons"] = self.lessons.to_dict()
        return plain
