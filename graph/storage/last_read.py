"""What a run has read last of its thread, for the next who reads the same.

A run looks at its thread at the door, and LangGraph loads the same again to go on from. While a
thread is held nobody else writes on it, and what the run itself writes makes this be forgotten.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LastRead(Generic[T]):
    """Holds one value, and gives it away once: what LangGraph goes on with is not kept beside it.

    All of it happens on one event loop.
    """

    def __init__(self) -> None:
        self._kept: tuple[Hashable, T] | None = None
        self._changes = 0

    def forget(self) -> None:
        """Note that something was written, or is about to be."""
        self._kept = None
        self._changes += 1

    async def read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return what was read last under this key, or else read it now."""
        kept, self._kept = self._kept, None
        if kept and kept[0] == key:
            return kept[1]
        before = self._changes
        found = await read()
        if before == self._changes:
            self._kept = key, found
        return found
