"""What can be said to a budget that is spent."""

import pytest

from daruma.state.spending import AGAIN, STOP, amount_in, granted, told
from daruma.state.steps import Overrun
from daruma.state.task import Amounts, Measure, Scope


def over(scope: Scope, measure: Measure, spent: float, limit: float) -> Overrun:
    return Overrun(node="main", scope=scope, measure=measure, spent=spent, limit=limit)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("tokens 50000", ("tokens", 50000.0)),
        (" Tokens 50,000 ", ("tokens", 50000.0)),
        ("usd 2.5", ("usd", 2.5)),
        ("seconds 1_000", ("seconds", 1000.0)),
        ("tokens 1,250,000", ("tokens", 1250000.0)),
        ("usd 2,5", None),
        ("usd 1,00", None),
        ("tokens 1,0000", None),
        ("u\u017fd 5", None),
        ("tokens 1.5", None),
        ("usd 0", None),
        ("usd -1", None),
        ("usd inf", None),
        ("tokens", None),
        ("50000", None),
        ("tokens 1 2", None),
        ("usd 1,000.5", ("usd", 1000.5)),
        ("usd 2,50", None),
        ("tokens 5,,000", None),
        ("tokens 50_", None),
    ],
)
def test_an_amount_is_read(answer: str, found: tuple[str, float] | None) -> None:
    """A measure and a number above 0, of tokens a whole one; a decimal comma is no thousands'."""
    assert amount_in(answer) == found


def test_an_answer_is_a_grant_or_an_end() -> None:
    """As much again is what the limit was."""
    assert granted(AGAIN, "tokens", 10) == Amounts(tokens=10)
    assert granted("usd 2", "usd", 10) == Amounts(usd=2.0)
    assert granted("seconds 3", "seconds", 10) == Amounts(seconds=3.0)
    assert granted(STOP, "usd", 10) is None


@pytest.mark.parametrize(
    ("reached", "line"),
    [
        (
            over("task", "tokens", 51200.0, 50000.0),
            "task's budget of 50,000 tokens is spent (51,200 ",
        ),
        (over("phase", "usd", 0.2512, 0.25), "phase's budget of $0.25 is spent ($0.2512 used)."),
        (over("task", "seconds", 61.25, 60.0), "task's budget of 60.0 s is spent (61.2 s used)."),
    ],
)
def test_a_limit_that_is_reached_is_told(reached: Overrun, line: str) -> None:
    """In a line, with what was used."""
    assert line in told(reached)
