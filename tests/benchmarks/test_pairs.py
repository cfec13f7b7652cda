"""Rounds in turns, and what is told of them."""

import pytest
from tests.benchmarks.pairs import Spread, in_turns, ratios


@pytest.mark.long
def test_each_way_is_gone_once_a_round_in_an_order_of_its_own() -> None:
    """What slows a round down hits all ways; who goes first changes, and is the same next time."""
    gone: list[str] = []
    ways = {name: lambda name=name: gone.append(name) for name in "abc"}

    in_turns(ways, 6, seed=1, warm=False)

    rounds = [gone[at : at + 3] for at in range(0, 18, 3)]
    assert all(sorted(each) == ["a", "b", "c"] for each in rounds)
    assert len({tuple(each) for each in rounds}) > 2
    first, gone[:] = gone.copy(), []
    in_turns(ways, 6, seed=1, warm=False)
    assert gone == first


@pytest.mark.long
def test_the_round_that_warms_up_is_left_out() -> None:
    """Imports, connections and plans of queries are the first round's alone."""
    numbers = iter(range(10))

    seen = in_turns({"a": lambda: next(numbers)}, 2)

    assert seen == {"a": [1, 2]}


def test_a_spread_is_a_median_and_the_ends() -> None:
    """An outlier shows, and does not move what stands for all."""
    spread = Spread.of([3.0, 1.0, 200.0])

    assert spread == Spread(3.0, 1.0, 200.0)
    assert spread.text() == "3.0 (1.0-200.0)"


def test_ratios_compare_within_a_round() -> None:
    """A round in which everything took longer says nothing about who is faster."""
    assert ratios([1.0, 9.0, 4.0], [2.0, 9.0, 1.0]) == Spread(1.0, 0.5, 4.0)
    with pytest.raises(ValueError, match="longer"):
        ratios([1.0], [1.0, 2.0])
