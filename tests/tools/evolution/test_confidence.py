"""How sure a pitfall is: what the formula promises, for all numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.evolution.evidence import HALF_LIFE, confidence, level_of

COUNTS = st.integers(0, 10_000)
SHARES = st.floats(0, 1)
AGES = st.floats(0, 1e9)


@pytest.mark.parametrize(
    ("hits", "clear", "sure"),
    [(1, 0, 0.6), (3, 0, 0.78), (1, 1, 0.43), (0, 3, 0.11), (0, 0, 1 / 3)],
)
def test_few_tasks_make_it_as_sure_as_is_said(hits: int, clear: int, sure: float) -> None:
    """One task 0.6, three 0.78: each task on either side counts."""
    assert confidence(hits, clear) == pytest.approx(sure, abs=0.005)


def test_a_quarter_of_a_year_halves_it() -> None:
    """What was not seen for long is less sure."""
    assert confidence(1, 0, age=HALF_LIFE) == pytest.approx(0.3)


@given(COUNTS, COUNTS, SHARES, AGES)
def test_it_is_a_share(hits: int, clear: int, alike: float, age: float) -> None:
    """From 0 to 1, whatever is on record."""
    assert 0 <= confidence(hits, clear, alike, age) <= 1


@given(COUNTS, COUNTS, SHARES, AGES, st.integers(1, 100))
def test_hits_add_and_what_went_well_takes_away(
    hits: int, clear: int, alike: float, age: float, more: int
) -> None:
    """Monotone in what speaks for it, and in what speaks against it."""
    sure = confidence(hits, clear, alike, age)

    assert confidence(hits + more, clear, alike, age) >= sure
    assert confidence(hits, clear + more, alike, age) <= sure


@given(COUNTS, COUNTS, st.tuples(SHARES, SHARES), st.tuples(AGES, AGES))
def test_less_alike_and_older_is_less_sure(
    hits: int, clear: int, alike: tuple[float, float], age: tuple[float, float]
) -> None:
    """Monotone in how alike the goals are, and in time."""
    least = confidence(hits, clear, min(alike), max(age))

    assert least <= confidence(hits, clear, max(alike), max(age))
    assert least <= confidence(hits, clear, min(alike), min(age))


@pytest.mark.parametrize(
    ("sure", "grave", "level"),
    [(0.49, True, "low"), (0.5, False, "medium"), (0.5, True, "high"), (0.49, False, "low")],
)
def test_a_level_says_whether_it_may_be_told(sure: float, grave: bool, level: str) -> None:
    """EV-03: below the least confidence it is marked, whatever it did."""
    assert level_of(sure, 0.5, grave=grave) == level
