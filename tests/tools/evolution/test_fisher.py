"""The exact test is exact: it says what counting every way of dealing out successes says."""

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.evolution.variants import chance_of_better


def by_counting(wins: int, of: int, other_wins: int, other_of: int) -> float:
    """Deal the successes out in every way there is, and count those that give the first so many."""
    ways = list(combinations(range(of + other_of), wins + other_wins))
    return sum(sum(place < of for place in way) >= wins for way in ways) / len(ways)


@st.composite
def tables(draw: st.DrawFn, most: int = 6) -> tuple[int, int, int, int]:
    of, other_of = draw(st.integers(0, most)), draw(st.integers(0, most))
    return draw(st.integers(0, of)), of, draw(st.integers(0, other_of)), other_of


@given(tables())
def test_it_equals_what_counting_every_way_gives(table: tuple[int, int, int, int]) -> None:
    """For all small tables."""
    assert isclose(chance_of_better(*table), by_counting(*table))


@given(tables(160))
def test_it_is_a_chance_and_falls_with_each_success(table: tuple[int, int, int, int]) -> None:
    """More successes of the first, with as many of the other, speak more for the first."""
    wins, of, other_wins, other_of = table
    chance = chance_of_better(*table)

    assert 0 < chance <= 1
    assert wins == of or chance_of_better(wins + 1, of, other_wins, other_of) <= chance


def test_it_says_what_the_books_say() -> None:
    """Fisher's lady tasting tea: all eight cups right is 1 in 70, six 17 in 70."""
    assert isclose(chance_of_better(4, 4, 0, 4), 1 / 70)
    assert isclose(chance_of_better(3, 4, 1, 4), 17 / 70)


@pytest.mark.parametrize("table", [(2, 1, 0, 1), (-1, 1, 0, 1), (0, 0, 3, 2)])
def test_counts_that_can_not_be_are_refused(table: tuple[int, int, int, int]) -> None:
    """There are no more successes than tries."""
    with pytest.raises(ValueError, match="not counts"):
        chance_of_better(*table)
