"""Times as people say them."""

import pytest

from daruma.graph.timeline.moments import ago, duration, duration_if_any


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0.0 s"),
        (0.42, "0.4 s"),
        (59.99, "59.9 s"),
        (60, "1 min 0 s"),
        (125.4, "2 min 5 s"),
        (3 * 3600 + 125, "3 h 2 min"),
    ],
)
def test_a_time_is_told_in_the_two_units_that_matter(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.9, "0 s"), (59.9, "59 s"), (119.9, "1 min 59 s"), (3661, "1 h 1 min")]
)
def test_a_time_that_still_runs_is_told_in_whole_seconds(seconds: float, said: str) -> None:
    """None of them before it is over."""
    assert duration(seconds, whole=True) == said


@pytest.mark.parametrize(("seconds", "said"), [(None, ""), (0.0, ""), (0.04, ""), (0.05, "0.1 s")])
def test_what_took_no_time_is_not_told(seconds: float | None, said: str) -> None:
    assert duration_if_any(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(5, "just now"), (125, "2 min ago"), (7200, "2 h ago"), (86400, "1 d ago")],
)
def test_how_long_ago_is_told_in_the_largest_unit(seconds: float, said: str) -> None:
    assert ago(seconds) == said
