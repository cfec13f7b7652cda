"""Waking those who wait for news of a thread, from whichever process the news comes (LISTEN)."""

import asyncio
from contextlib import suppress
from hashlib import blake2b
from typing import Final
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection

from daruma.graph.storage.pool import Pool

CHANNEL: Final = "daruma_events"

_PAUSE: Final = 1.0
"""Seconds until a lost connection is made anew; who waits looks by himself meanwhile."""

_IDLE: Final = 10.0
"""Seconds between two looks whether anybody still listens."""


def ring_of(thread_id: str) -> str:
    """Return what is said on the channel of a thread: its name may be too long for it."""
    return blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Ear:
    """Hears of one thread; news that came between two waits ends the next one at once."""

    def __init__(self, ring: str) -> None:
        self.ring = ring
        self._rung = asyncio.Event()

    def rung(self) -> None:
        """Wake who waits."""
        self._rung.set()

    async def news(self, seconds: float) -> None:
        """Wait for news, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()


class Bell:
    """One connection, which listens for as long as anybody has an ear; all on the pool's loop."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._ears = WeakSet[Ear]()
        self._listening: asyncio.Task[None] | None = None

    async def ear(self, thread_id: str) -> Ear:
        """Return what hears of a thread, for as long as somebody keeps it."""
        self._ears.add(ear := Ear(ring_of(thread_id)))
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        return ear

    async def close(self) -> None:
        """Listen no longer."""
        if self._listening:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        while self._ears:
            with suppress(psycopg.Error):
                await self._hear()
            await asyncio.sleep(_PAUSE)

    async def _hear(self) -> None:
        url = str(self._pool.conninfo)
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            await connection.execute(f"LISTEN {CHANNEL}")
            for ear in [*self._ears]:
                ear.rung()
            while self._ears:
                async for notice in connection.notifies(timeout=_IDLE):
                    for ear in [each for each in self._ears if each.ring == notice.payload]:
                        ear.rung()
