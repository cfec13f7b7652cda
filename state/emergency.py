"""The structured error that a failed task ends with (EM-01)."""

from typing import Any

from daruma.state.emergency_en import EN
from daruma.state.emergency_words import Words
from daruma.state.emergency_zh import ZH
from daruma.state.failure import Code, Failure
from daruma.state.record import record
from daruma.state.settings_fallback import EmergencyRule, FallbackChain

_RETRYABLE: frozenset[Code] = frozenset(
    {
        "timeout",
        "loop_detected",
        "llm_failure",
        "verification_failed",
        "max_steps_exceeded",
        "budget_exceeded",
        "workspace_conflict",
        "storage_unavailable",
        "approval_denied",
        "plan_refused",
    }
)
"""The codes after which the same may go better; EM-02 names them."""

_WORDS = {"en": EN, "zh": ZH}


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


def words_of(chain: FallbackChain) -> Words:
    """Return the words of the language that results are told in."""
    return _WORDS[chain.emergency.language]


def emergency_of(failure: Failure, chain: FallbackChain | None = None) -> EmergencyError:
    """Build the structured error of a failure by rule; no model is asked.

    What ``chain`` says of the code counts before the built-in advice (EM-03). What is final is not
    retryable, whatever its code. With emergency switched off there is the message alone.
    """
    chain = chain or FallbackChain()
    rule = chain.emergency.rules.get(failure.code) or EmergencyRule()
    words = words_of(chain)
    built_in = words.refused if failure.final else words.advice[failure.code]
    advice = built_in if rule.suggestions is None else rule.suggestions
    retryable = failure.code in _RETRYABLE if rule.retryable is None else rule.retryable
    return EmergencyError(
        error_code=failure.code,
        message=told(failure, words),
        suggestions=advice if chain.has_emergency else (),
        retryable=retryable and not failure.final,
        original_error=failure.original_error,
    )


def told(failure: Failure, words: Words) -> str:
    """Return a failure's message, after the language's headline where it has one."""
    headline = words.headlines.get(failure.code)
    return f"{headline}：{failure.message}" if headline else failure.message
