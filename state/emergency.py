"""The structured error that a failed task ends with (EM-01)."""

from typing import Any

from daruma.state.failure import Code, Failure
from daruma.state.record import record

_ADVICE: dict[Code, tuple[bool, tuple[str, ...]]] = {
    "timeout": (True, ("Try again.", "Raise the time limit in the settings.")),
    "loop_detected": (True, ("Describe the goal in smaller steps.", "Try another model.")),
    "llm_failure": (
        True,
        ("Check the model's name, key and address with `daruma doctor`.", "Try again later."),
    ),
    "internal_error": (False, ("Report this with the output of `daruma show`.",)),
    "verification_failed": (
        True,
        (
            "Read what the checks said, with `daruma show`.",
            "Give more steps: budgets.think, .verify, .reflect.",
        ),
    ),
    "max_steps_exceeded": (
        True,
        ("Ask for less at a time.", "Raise budgets.max_steps, or budgets.think in a plan."),
    ),
    "rollback_failed": (False, ("Look at the workspace before anything else runs there.",)),
    "sandbox_violation": (False, ("Allow the access in the settings, or change the command.",)),
    "workspace_conflict": (True, ("Check that the workspace exists and nothing else edits it.",)),
    "storage_unavailable": (True, ("Check the database with `daruma doctor`, then resume.",)),
    "approval_denied": (True, ("Approve the call, or ask for another way.",)),
    "plan_refused": (True, ("Describe the goal in more detail.", "Try another model.")),
    "bad_request": (False, ("Correct the request and send it again.",)),
}


@record
class EmergencyError:
    """What a failed task says to the program that runs it."""

    error_code: Code
    message: str
    suggestions: tuple[str, ...] = ()
    retryable: bool = False
    original_error: str | None = None
    schema_version: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return the five fields of EM-01 as JSON-able values."""
        return {
            "error_code": self.error_code,
            "message": self.message,
            "suggestions": list(self.suggestions),
            "retryable": self.retryable,
            "original_error": self.original_error,
        }

    def to_error_message(self) -> str:
        """Return the message with its suggestions numbered below it."""
        lines = (f"{number}. {text}" for number, text in enumerate(self.suggestions, 1))
        return "\n".join((self.message, *lines))


def emergency_of(failure: Failure) -> EmergencyError:
    """Build the structured error of a failure by rule; no model is asked."""
    retryable, suggestions = _ADVICE[failure.code]
    return EmergencyError(
        error_code=failure.code,
        message=failure.message,
        suggestions=suggestions,
        retryable=retryable,
        original_error=failure.original_error,
    )
