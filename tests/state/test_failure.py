"""A failure is a value: it can be compared, stored and told, and a bug keeps its traceback."""

import pytest
from tests.parts import a_failure

from daruma.state.failure import Code, ModelFailed, bug_in, classify, failure_of


def test_failures_that_differ_in_numbers_are_the_same() -> None:
    """Ids, times and ports change from one try to the next."""
    one = a_failure(message="request 71 to port 8080 failed")
    other = a_failure(message="request 2 to port 9 failed")

    assert one.signature == other.signature


@pytest.mark.parametrize(
    "other",
    [a_failure(message="other"), a_failure("timeout"), a_failure(node="plan")],
)
def test_other_words_codes_and_nodes_are_another_failure(other: object) -> None:
    """RE-07 counts recoveries of the same failure only."""
    assert getattr(other, "signature", None) != a_failure().signature


def test_a_bug_keeps_its_traceback() -> None:
    """The last net: the type, the words and where it happened."""

    def broken() -> None:
        raise KeyError("absent")

    with pytest.raises(KeyError) as caught:
        broken()
    failure = bug_in("verify", caught.value)

    assert (failure.code, failure.node) == ("internal_error", "verify")
    assert failure.message == "KeyError: 'absent'"
    assert failure.original_error == "KeyError"
    assert "in broken" in failure.detail


def test_a_bug_may_come_as_its_repr() -> None:
    """After a crash in the handler LangGraph hands over text."""
    failure = bug_in("verify", "KeyError('absent')")

    assert (failure.code, failure.message) == ("internal_error", "KeyError('absent')")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "timeout"),
        (ModelFailed("x"), "llm_failure"),
        (ModelFailed("x", code="timeout"), "timeout"),
        (ValueError("timeout"), "internal_error"),
        ("TimeoutError()", "timeout"),
        ("ValueError('TimeoutError')", "internal_error"),
    ],
)
def test_an_exception_is_classified_by_its_type(error: BaseException | str, code: Code) -> None:
    """EM-02: never by its words; a ``repr`` begins with the type."""
    assert classify(error) == code


def test_a_models_failure_keeps_code_and_cause() -> None:
    """The provider's own class is told under ``original_error``."""
    failure = failure_of(ModelFailed("slow", code="timeout", cause="APITimeoutError"), "plan")

    assert (failure.code, failure.node, failure.message) == ("timeout", "plan", "slow")
    assert failure.original_error == "APITimeoutError"
