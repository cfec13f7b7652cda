"""A connection that does not wait for ever: a server that has fallen silent is a lost one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

from psycopg import AsyncConnection
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout
from psycopg.rows import DictRow
from psycopg.waiting import wait_async
from typing_extensions import override

T = TypeVar("T")

ANSWER_SECONDS: Final = 8.0
"""How long one message waits for its answer; without a limit, a silent network hangs for ever."""

_CHECKED_EVERY: Final = 0.1

_answer: ContextVar[float] = ContextVar("daruma_answer_seconds", default=ANSWER_SECONDS)


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """Give the server longer, or less long, for each message of what is done within."""
    before = _answer.set(seconds)
    try:
        yield
    finally:
        _answer.reset(before)


class LimitedConnection(AsyncConnection[DictRow]):
    """A connection that is closed when its wait ends early.

    psycopg would ask the server to cancel first, and wait for that, for up to 10 s.
    """

    @override
    async def wait(
        self, gen: PQGen[T], interval: float = _CHECKED_EVERY, timeout: float | None = None
    ) -> T:
        """Wait for an answer. Raises ``ConnectionTimeout`` when there is none in time."""
        seconds = timeout or _answer.get()
        try:
            async with asyncio.timeout(seconds):
                return await wait_async(gen, self.pgconn.socket, interval=interval)
        except TimeoutError:
            self.pgconn.finish()
            raise ConnectionTimeout(f"no answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise
