"""Leases for a server that keeps the runs of a thread apart itself, but for a moment at an end."""

import asyncio
import time
from typing import Final

from daruma.graph.leases import Hold, Leases
from daruma.state.errors import ThreadBusy

SECONDS: Final = 10.0
"""How long a thread is waited for: a run that is cancelled kills its commands first."""

_BETWEEN: Final = 0.05


class PatientLeases:
    """Leases that are waited for. The server takes a run back, and begins another, as one ends."""

    def __init__(self, leases: Leases, seconds: float = SECONDS) -> None:
        self._leases, self._seconds = leases, seconds

    def take(self, thread_id: str) -> Hold:
        return self._leases.take(thread_id)

    async def atake(self, thread_id: str) -> Hold:
        until = time.monotonic() + self._seconds
        while True:
            try:
                return await self._leases.atake(thread_id)
            except ThreadBusy:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(_BETWEEN)

    def give_back(self, hold: Hold) -> None:
        self._leases.give_back(hold)

    async def agive_back(self, hold: Hold) -> None:
        await self._leases.agive_back(hold)
