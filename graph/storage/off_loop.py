"""Work on much data is done in a thread, so that it holds up nobody else on the loop."""

from collections.abc import Callable
from typing import Final, TypeVar

from daruma.tools.threads import to_thread

T = TypeVar("T")

_MUCH: Final = 64 * 1024
"""Bytes: unpacked and validated in a few milliseconds. Less is done before a thread wakes."""


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes, in a thread where that is much."""
    return work() if size < _MUCH else await to_thread(work)
