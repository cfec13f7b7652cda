"""A set that only ever grows, in two parts: what is added copies little of what there is.

A list that knows of itself is given a whole new set for each step otherwise, and copies at step
1,000 what it knows of all the steps before.
"""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, TypeVar

T = TypeVar("T", bound=Hashable)

Gathered = tuple[frozenset[T], frozenset[T]]
"""Most of it, and what came last: so few that it is as well copied each time."""

NOTHING: Final[Gathered[Any]] = frozenset(), frozenset()


def gathered(known: Gathered[T], values: Iterable[T]) -> Gathered[T]:
    """Return what is known with values added; ``known`` stays as it is."""
    most, last = known
    last = last.union(values)
    if len(last) ** 2 > len(most):
        return most | last, frozenset()
    return most, last


def holds_any(known: Gathered[T], values: Collection[T]) -> bool:
    """Whether any of the values is among what is known."""
    most, last = known
    return not (most.isdisjoint(values) and last.isdisjoint(values))
