"""Which memories fit a goal at all: the floor beneath which none is recalled. Pure."""

from math import ceil
from typing import Final

from daruma.tools.memory.words import is_name, telling_words

SHARE: Final = 3
"""One word in so many of the goal's telling ones has to be in a memory ..."""
ENOUGH: Final = 2
"""... but no more than so many."""


def related(goal: str, text: str) -> bool:
    """Whether a memory is about something that a goal speaks of: the floor of what is recalled.

    It has to share a third of the goal's telling words, but no more than two; one word in a goal of
    up to three. A name as code writes it (`DB_URL`, `billing.py`) is enough by itself. These are
    our own choice: a wrong memory costs every request of the task, a missing one can be searched.
    """
    wanted = telling_words(goal)
    shared = wanted & telling_words(text)
    needed = min(ENOUGH, ceil(sum(not is_name(word) for word in wanted) / SHARE))
    return any(map(is_name, shared)) or len(shared) >= max(needed, 1)
