"""What workers of this process say, line by line, and waiting for it."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class WorkerLines(logging.Handler):
    """Hears the log of workers, on whichever thread it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._news: asyncio.Queue[str] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self._loop.call_soon_threadsafe(self._news.put_nowait, record.getMessage())

    async def until(self, text: str) -> str:
        """Wait for a line with this text, for half a minute at most."""
        async with asyncio.timeout(30):
            while text not in (line := await self._news.get()):
                pass
            return line

    @classmethod
    @contextmanager
    def heard(cls) -> Iterator[Self]:
        """Hear what workers say meanwhile."""
        handler, log = cls(), logging.getLogger("daruma.worker")
        before = log.level
        log.propagate = False  # what pytest keeps of it would count as held
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        try:
            yield handler
        finally:
            log.removeHandler(handler)
            log.setLevel(before)
            log.propagate = True
