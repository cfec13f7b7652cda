"""What the checks said is told shortly, with the part that matters."""

from dataclasses import replace

import pytest
from tests.parts import GREEN, RED

from daruma.state.verification import Check, Verification, excerpt


def red(command: str, output: str) -> Check:
    return Check(command=command, passed=False, exit_code=1, output=output)


def test_nothing_to_run_passes_and_says_so() -> None:
    """VE-02."""
    assert Verification(note="no checks are known").passed
    assert Verification(note="no checks are known").summary == "no checks are known"
    assert Verification().summary == "nothing to check"


NONE = replace(GREEN.checks[0], command="pytest", note="no tests", conclusive=False)
OUTCOMES = [
    ((), "none", "nothing to check"),
    ((NONE,), "none", "pytest: none, no tests"),
    ((NONE, *GREEN.checks), "passed", "true: passed"),
    ((NONE, *GREEN.checks, *RED.checks), "failed", "false: failed (exit 1)"),
    ((replace(RED.checks[0], conclusive=False),), "failed", "false: failed (exit 1)"),
]


@pytest.mark.parametrize(("checks", "outcome", "why"), OUTCOMES)
def test_what_was_not_checked_has_neither_passed_nor_failed(
    checks: tuple[Check, ...], outcome: str, why: str
) -> None:
    """VE-02: and the one line says which checks decided."""
    verification = Verification(checks=checks)

    assert (verification.outcome, verification.why) == (outcome, why)
    assert verification.passed == (outcome != "failed")


def test_one_red_check_is_enough() -> None:
    """All have to pass."""
    assert GREEN.passed
    assert not RED.passed
    assert not Verification(checks=(*GREEN.checks, *RED.checks)).passed


def test_the_summary_names_every_check_and_how_it_ended() -> None:
    """On one line, a time limit and an explanation included."""
    late = replace(RED.checks[0], command="slow", exit_code=None, timed_out=True)
    empty = replace(GREEN.checks[0], command="pytest", note="there are no tests", conclusive=False)
    whole = Verification(checks=(*GREEN.checks, *RED.checks, late, empty))

    assert whole.summary == (
        "true: passed, false: failed (exit 1), slow: timed out, pytest: none, there are no tests"
    )


def test_the_excerpt_holds_red_checks_only() -> None:
    """VE-03: useful to the model."""
    text = excerpt(Verification(checks=(replace(GREEN.checks[0], output="fine"), *RED.checks)))

    assert "it is red" in text
    assert "fine" not in text


def test_the_excerpt_keeps_the_end_of_each_and_says_what_is_cut() -> None:
    """VE-03: short, 4000 characters for all checks together, the last lines being what matters."""
    checks = (red("a", "x" * 9000 + "the end of a"), red("b", "y" * 9000 + "the end of b"))

    text = excerpt(Verification(checks=checks))

    assert "the end of a" in text
    assert "the end of b" in text
    assert "[... 7012 characters cut]" in text
    assert len(text) < 4000 + 200
