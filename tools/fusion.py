"""Bringing several rankings of the same things together."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

T = TypeVar("T", bound=Hashable)

K: Final = 60
"""How little the first places count more than those after them; the value of the paper."""


def fused(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """Return the things of all rankings, the best first: reciprocal rank fusion.

    A thing's score is the sum of ``1 / (60 + place)``: places are comparable, scores of different
    rankings are not. After Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
    Condorcet and individual Rank Learning Methods", SIGIR 2009.

    >>> [thing for thing, _ in fused([["a", "b", "c"], ["b", "d"]])]
    ['b', 'a', 'd', 'c']
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for place, thing in enumerate(ranking, start=1):
            scores[thing] = scores.get(thing, 0.0) + 1 / (K + place)
    return sorted(scores.items(), key=lambda each: -each[1])
