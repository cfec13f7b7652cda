"""What a task ends with (MO-07)."""

from typing import Any, Final

from pydantic_core import to_jsonable_python

from daruma.state.conversation import Clarification
from daruma.state.emergency import EmergencyError
from daruma.state.failure import Recovered
from daruma.state.lessons import Lessons
from daruma.state.plan import Phase, Plan
from daruma.state.record import record
from daruma.state.steps import Audit, ContextCost, ContextUsage
from daruma.state.task import Status
from daruma.state.verification import Outcome, Verification

NOT_CHECKED: Final = "completed, not checked"
"""What every face says of a success that nothing checked (MO-10)."""


@record
class Checked:
    """Whether the work was checked: ``outcome``, ``by`` which checks, and ``why`` it is that."""

    outcome: Outcome = "none"
    by: tuple[str, ...] = ()
    why: str = ""
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return {"outcome": self.outcome, "by": list(self.by), "why": self.why}


def headline_of(status: str, checked: str) -> str:
    """Return how a status is shown: a success of which nothing was checked says so (MO-10)."""
    return NOT_CHECKED if (status, checked) == ("completed", "none") else status


@record
class Structured:
    """The structure that a task's answer is to have (FA-10); ``value`` is what fits the schema.

    ``said`` is an answer that was asked for and does not fit, ``problem`` says why.
    """

    schema: dict[str, Any]
    value: dict[str, Any] | None = None
    said: str = ""
    problem: str = ""
    schema_version: int = 1


@record
class TaskResult:
    """The one result of a task.

    ``completed`` is the only success, and ``checked`` says whether anything checked it. ``answer``
    is the model's last answer, of a task that failed, too, whose ``output`` says why.
    ``verifications`` are all that were made, in order, with their times and output (VE-09).
    ``budgets`` counts the steps spent by kind, ``usage`` sums calls, tokens and US dollars by role,
    ``timings`` holds seconds by kind of step and in ``total``: those of each step added up, so that
    two calls of tools that ran side by side for a second are two in ``tool``. ``notes`` says what a
    reader must know of how the work was done, ``audit`` what was changed or left out of the model's
    calls. ``sandbox`` is the weakest level that a command ran at, None if none ran. ``recoveries``
    are the actions that were taken against failures, in order; ``context_cost`` is what was done to
    keep requests within the context, ``context_usage`` what that is spent on (CX-08).
    ``clarification`` is what a parked task asks the user for, None where it asks nothing.
    ``lessons`` is what it was given of what earlier tasks taught, None if nothing. ``structured``
    is the answer in the structure that was asked for, of a task that is completed: an instance of
    the class, or a dict. ``replaced`` are the plans that the one whose ``phases`` these are took
    the place of, as they then stood, the oldest first (PL-01b).
    """

    task_id: str
    status: Status
    output: str
    answer: str = ""
    checked: Checked = Checked()
    error_message: str | None = None
    error_struct: EmergencyError | None = None
    phases: tuple[Phase, ...] = ()
    verification: Verification | None = None
    verifications: tuple[Verification, ...] = ()
    budgets: dict[str, int]
    usage: dict[str, dict[str, int | float]]
    timings: dict[str, float]
    notes: tuple[str, ...] = ()
    audit: tuple[Audit, ...] = ()
    sandbox: str | None = None
    recoveries: tuple[Recovered, ...] = ()
    context_cost: tuple[ContextCost, ...] = ()
    context_usage: ContextUsage | None = None
    clarification: Clarification | None = None
    lessons: Lessons | None = None
    structured: Any = None
    replaced: tuple[Plan, ...] = ()
    schema_version: int = 1

    @property
    def completed(self) -> bool:
        """Whether the task succeeded; no other status counts as success (MO-08)."""
        return self.status == "completed"

    @property
    def headline(self) -> str:
        """The status, and of a success that nothing checked that it was not (MO-10)."""
        return headline_of(self.status, self.checked.outcome)

    def __str__(self) -> str:
        """Return what a person reads first: how it ended, and the output."""
        return f"{self.headline}\n{self.output}".strip()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: FBT001 - IPython's
        """Show it in IPython as it is printed."""
        printer.text("..." if cycle else str(self))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values; of the last five fields and the error only what there is."""
        plain: dict[str, Any] = {
            "task_id": self.task_id,
            "status": self.status,
            "headline": self.headline,
            "output": self.output,
            "answer": self.answer,
            "checked": self.checked.to_dict(),
            "error_message": self.error_message,
            "phases": [phase.to_dict() for phase in self.phases],
            "verification": self.verification.summary if self.verification else None,
            "verifications": [each.to_dict() for each in self.verifications],
            "budgets": self.budgets,
            "usage": self.usage,
            "timings": self.timings,
            "notes": list(self.notes),
            "audit": [audit.to_dict() for audit in self.audit],
            "sandbox": self.sandbox,
            "recoveries": [each.to_dict() for each in self.recoveries],
            "context_cost": [each.to_dict() for each in self.context_cost],
        }
        for name in ("context_usage", "error_struct", "clarification", "lessons"):
            if each := getattr(self, name):
                plain[name] = each.to_dict()
        if self.structured is not None:
            plain["structured"] = to_jsonable_python(self.structured, by_alias=True)
        if self.replaced:
            plain["replaced"] = [plan.to_dict() for plan in self.replaced]
        return plain
