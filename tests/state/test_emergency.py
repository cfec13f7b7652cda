"""The structured error is built by rule from the failure's code."""

from typing import get_args

import pytest
from tests.parts import a_failure, settings

from daruma.state.emergency import EN, ZH, EmergencyError, Words, emergency_of
from daruma.state.failure import Code, Failure
from daruma.state.settings import FallbackChain

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
        ("plan_rejected", True),
        ("bad_request", False),
    ],
)
def test_only_what_may_go_better_is_retryable(code: Code, retryable: bool) -> None:
    """EM-02."""
    assert emergency_of(Failure(code=code, node="main", message="m")).retryable is retryable


def chain(**emergency: object) -> FallbackChain:
    return settings(fallback_chain={"emergency": emergency}).fallback_chain


@pytest.mark.parametrize("words", [EN, ZH])
def test_every_language_has_something_to_say_of_every_code(words: Words) -> None:
    """EM-03: the same codes, at least one suggestion each, and every sentence."""
    assert words.advice.keys() == set(get_args(Code))
    assert all(advice and all(advice) for advice in words.advice.values())
    assert words.refused
    assert all(f"{{{place}}}" in words.ended for place in ("status", "reason"))
    assert set(words.headlines) in (set(), set(get_args(Code)))


def test_a_rule_of_the_settings_counts_before_the_advice_that_is_built_in() -> None:
    """EM-03: each part of it for itself, for its code alone."""
    rules = {
        "llm_failure": {"retryable": False, "suggestions": ["Call 555."]},
        "internal_error": {"retryable": True},
        "timeout": {"suggestions": []},
    }
    ruled = chain(rules=rules)

    model = emergency_of(a_failure(), ruled)
    bug = emergency_of(a_failure("internal_error"), ruled)
    slow = emergency_of(a_failure("timeout"), ruled)
    loop = emergency_of(a_failure("loop_detected"), ruled)

    assert (model.retryable, model.suggestions) == (False, ("Call 555.",))
    assert (bug.retryable, bug.suggestions) == (True, EN.advice["internal_error"])
    assert (slow.retryable, slow.suggestions) == (True, ())
    assert loop == emergency_of(a_failure("loop_detected"))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_will_be_refused_again_is_not_retryable(language: str) -> None:
    """EM-02: whatever its code and the rules say; the advice is about the key."""
    refused = Failure(code="llm_failure", node="main", message="401", final=True)
    error = emergency_of(refused, chain(language=language, rules={"llm_failure": {"retryable": 1}}))

    assert not error.retryable
    assert "OPENAI_API_KEY" in error.suggestions[0]


def test_with_emergency_off_there_is_the_message_alone() -> None:
    """EM-05: for ``error_message``, without advice."""
    assert emergency_of(a_failure(), chain(enabled=False)).to_error_message() == "broken"
