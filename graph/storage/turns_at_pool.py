"""Whose turn it is at the pool: no more ask it for a connection than it has.

Who waits within the pool has a lock, a task and a timer made for it, and is woken by two others: in
a crowd of runs, where most statements wait, that is a tenth of what a step takes.
"""

import asyncio
from typing import Final

from psycopg_pool import PoolTimeout


class TurnsAtPool:
    """So many turns, given in the order they were asked for; all of it on one event loop.

    Nobody waits for one longer than ``seconds``: as in the pool itself, it raises ``PoolTimeout``,
    upon which whoever waits looks whether the database is lost.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._free: Final = asyncio.Semaphore(most)
        self._seconds = seconds

    async def begin(self) -> None:
        """Wait for a turn."""
        if not self._free.locked():  # then it waits for nothing, and needs no timer
            await self._free.acquire()
            return
        try:
            async with asyncio.timeout(self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise PoolTimeout(f"no connection was free within {self._seconds:g} s") from None

    def end(self) -> None:
        """Give the turn on."""
        self._free.release()
