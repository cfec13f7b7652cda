"""Bringing several rankings of the same things together."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

T = TypeVar("T", bound=Hashable)

K: Final = 60
"""How little the first places count more than those after them; the value of the paper."""

BY_CHANCE: Final = 1 / 3
"""Share of the weight of a query's words: what has less is left out beside a ranking by meaning.

Places alone do not tell that the best by words has but one word of six, and would put it before the
best by meaning. On the labelled questions of the tests every share from 0.25 to 0.7 does the same.
"""


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
