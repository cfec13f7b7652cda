"""The structured error is built by rule from the failure's code."""

from typing import get_args

import pytest

from daruma.state.emergency import EmergencyError, emergency_of
from daruma.state.failure import Code, Failure

ERROR = EmergencyError(
    error_code="timeout",
    message="It took too long.",
    suggestions=("Wait.", "Ask less."),
    retryable=True,
    original_error="TimeoutError",
)


def test_an_error_has_five_fields() -> None:
    """EM-01: these and no others."""
    assert ERROR.to_dict() == {
        "error_code": "timeout",
        "message": "It took too long.",
        "suggestions": ["Wait.", "Ask less."],
        "retryable": True,
        "original_error": "TimeoutError",
    }


def test_the_message_is_followed_by_numbered_suggestions() -> None:
    """EM-01."""
    assert ERROR.to_error_message() == "It took too long.\n1. Wait.\n2. Ask less."


@pytest.mark.parametrize("code", get_args(Code))
def test_every_code_has_an_error(code: Code) -> None:
    """EM-02: no failure is without advice, and the words are those of the failure."""
    error = emergency_of(Failure(code=code, node="main", message="m", original_error="E"))

    assert error.error_code == code
    assert (error.message, error.original_error) == ("m", "E")
    assert error.suggestions


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("timeout", True),
        ("loop_detected", True),
        ("llm_failure", True),
        ("internal_error", False),
        ("verification_failed", True),
        ("max_steps_exceeded", True),
        ("rollback_failed", False),
        ("sandbox_violation", False),
        ("workspace_conflict", True),
        ("storage_unavailable", True),
        ("approval_denied", True),
        ("plan_refused", True),
        ("bad_request", False),
    ],
)
def test_only_what_may_go_better_is_retryable(code: Code, retryable: bool) -> None:
    """EM-02."""
    assert emergency_of(Failure(code=code, node="main", message="m")).retryable is retryable
