"""Telling what a job's run tells to those who follow its thread, beside the run: it never waits."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from daruma.graph.storage.event_log import EventLog
from daruma.state.errors import StorageUnavailable

LOG: Final = logging.getLogger("daruma.worker")

_LAST_WORDS: Final = 2.0
"""Seconds that a job waits, at its end, for what it has told to be kept."""


class Announcing:
    """Keeps the events of one run; what comes while some are written is written next, at once."""

    def __init__(self, log: EventLog, thread_id: str, run: str) -> None:
        self._log, self._thread_id, self._run = log, thread_id, run
        self._told: list[Mapping[str, Any]] = []
        self._news = asyncio.Event()
        self._over = False

    def tell(self, event: object) -> None:
        """Tell of an event; what an application's tool streams in a form of its own is left out."""
        if isinstance(event, Mapping) and _is_json(event):
            self._told.append(dict(event))
            self._news.set()

    @classmethod
    @asynccontextmanager
    async def of(cls, log: EventLog, thread_id: str, run: str) -> "AsyncIterator[Announcing]":
        """Yield it for as long as a run lasts."""
        announcing = cls(log, thread_id, run)
        writing = asyncio.create_task(announcing._write())
        try:
            yield announcing
        finally:
            announcing._over = True
            announcing._news.set()
            await asyncio.wait([writing], timeout=_LAST_WORDS)
            writing.cancel()

    async def _write(self) -> None:
        while not (self._over and not self._told):
            await self._news.wait()
            self._news.clear()
            told, self._told = self._told, []
            try:
                if told:
                    await self._log.write(self._thread_id, self._run, told)
            except StorageUnavailable as error:  # who follows sees the end all the same
                LOG.warning(f"thread {self._thread_id!r}: events are lost: {error}")


def _is_json(event: Mapping[str, Any]) -> bool:
    try:
        json.dumps(event, default=str)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
