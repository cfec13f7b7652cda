"""A connection that does not wait for ever: a server that has fallen silent is a lost one."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Final, TypeVar

from psycopg import AsyncConnection, AsyncCursor
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout, OperationalError
from psycopg.rows import DictRow
from psycopg.waiting import Ready, Wait
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
        """Wait for an answer. Raises ``ConnectionTimeout`` when there is none in time.

        psycopg's own would also come round ten times a second, for what interrupts a thread.
        """
        seconds = timeout or _answer.get()
        loop = asyncio.get_running_loop()
        socket = self.pgconn.socket  # raises where there is none, before anything is begun
        try:
            ends = loop.time() + seconds
            wanted = next(gen)
            while True:
                wanted = gen.send(await _ready(loop, socket, wanted, ends))
        except StopIteration as done:
            answer: T = done.value
            return answer
        except TimeoutError:
            self.pgconn.finish()
            raise ConnectionTimeout(f"no answer within {seconds:g} s") from None
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise
        except OSError as error:
            raise OperationalError(f"the connection's socket is lost: {error}") from error

    async def carried_out(self, statement: str, values: Mapping[str, Any]) -> list[DictRow]:
        """Carry out a statement that comes again and again; return its rows.

        A cursor that is given the same text again knows how to write down its values.
        """
        cursor = self._cursors.get(statement)
        if cursor is None:
            cursor = self._cursors[statement] = self.cursor()
        await cursor.execute(statement, values, prepare=True)
        return await cursor.fetchall() if cursor.description else []

    @cached_property
    def _cursors(self) -> dict[str, AsyncCursor[DictRow]]:
        return {}


async def _ready(loop: asyncio.AbstractEventLoop, socket: int, wanted: Wait, ends: float) -> Ready:
    """Return what a socket is ready for. Raises ``TimeoutError``."""
    came: asyncio.Future[Ready] = loop.create_future()
    timer = loop.call_at(ends, _late, came)
    try:
        if wanted & Wait.R:
            loop.add_reader(socket, _note, came, Ready.R)
        if wanted & Wait.W:
            loop.add_writer(socket, _note, came, Ready.W)
        return await came
    finally:
        timer.cancel()
        if wanted & Wait.R:
            loop.remove_reader(socket)
        if wanted & Wait.W:
            loop.remove_writer(socket)


def _note(came: "asyncio.Future[Ready]", ready: Ready) -> None:
    if not came.done():
        came.set_result(ready)


def _late(came: "asyncio.Future[Ready]") -> None:
    if not came.done():
        came.set_exception(TimeoutError())
