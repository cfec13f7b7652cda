"""How alike two goals are, by the words that tell what they are about. Pure."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from daruma.tools.memory.words import telling_words
from daruma.tools.word_splitting import terms

SAME_KIND: Final = 0.5
"""Goals that are at least so alike are of one kind of task, and their failures one pitfall. Half of
the words is our own choice: less joins what only happens in the same repository."""

SAME_TASK: Final = 0.9
"""Goals that are at least so alike, and have the same numbers, ask for the same thing; what speaks
against a pitfall has to be so near. Our own choice: in a series one task says little of the next.
"""

NEEDED: Final = {1: 0.6, 2: 0.5}
"""How alike a goal has to be to those of a pitfall that was seen in so many tasks."""
NEEDED_OF_MORE: Final = 0.4


def likeness(one: str, other: str) -> float:
    """Return how much two goals have in common, from 0 to 1: Dice's coefficient of their words.

    >>> likeness("Fix the rounding in split.py", "fix rounding of split.py!")
    1.0
    """
    ours, theirs = _words(one), _words(other)
    if not ours or not theirs:
        return float(one.split() == other.split())
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def likeness_to_any(goal: str, others: Iterable[str]) -> float:
    """Return how alike a goal is to the one that it is most alike to; 0 where there is none."""
    return max((likeness(goal, other) for other in others), default=0.0)


def ask_for_the_same(one: str, other: str) -> bool:
    """Whether two goals are those of one task that comes again."""
    return _numbers(one) == _numbers(other) and likeness(one, other) >= SAME_TASK


def needed(tasks: int) -> float:
    """Return how alike a goal has to be to be told of a pitfall: the more tasks, the less."""
    return NEEDED.get(tasks, NEEDED_OF_MORE)


@lru_cache(maxsize=20_000)
def _words(goal: str) -> frozenset[str]:
    """Numbers tell tasks apart however short they are: ``fix issue 7``."""
    return telling_words(goal) | _numbers(goal) or frozenset(terms(goal))


@lru_cache(maxsize=20_000)
def _numbers(goal: str) -> frozenset[str]:
    return frozenset(word for word in terms(goal) if word.isdigit())
