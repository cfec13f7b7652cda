"""Several rankings become one."""

import pytest

from daruma.tools.text.search import fused


@pytest.mark.parametrize(
    ("rankings", "together"),
    [
        ([], []),
        ([["a", "b"], []], ["a", "b"]),
        ([["a", "b", "c"], ["c", "b", "a"]], ["a", "c", "b"]),
        ([["a", "b"], ["b", "c"]], ["b", "a", "c"]),
        ([["a"], ["b"], ["b"]], ["b", "a"]),
    ],
)
def test_what_several_rankings_have_comes_first(
    rankings: list[list[str]], together: list[str]
) -> None:
    """Places count, not scores; of equals the one that was seen first."""
    assert [thing for thing, _ in fused(rankings)] == together


def test_the_score_is_that_of_the_paper() -> None:
    """1 / (60 + place), for each ranking."""
    assert dict(fused([["a"], ["b", "a"]])) == {"a": 1 / 61 + 1 / 62, "b": 1 / 61}
