"""The one way to the database; it rides out one that is lost (DU-04)."""

import asyncio
import math
import random
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, TypeVar

from psycopg.rows import DictRow
from psycopg_pool import PoolClosed, PoolTimeout

from daruma.graph.storage._pool import (
    Connection,
    Pool,
    Values,
    answers_within,
    error_line,
    leaves_connections_dead,
    meaning_of,
)
from daruma.graph.sync import on
from daruma.state.errors import StorageUnavailable

# --- Rides out a database that is lost: what failed is made again, for a bounded time (DU-04).

T = TypeVar("T")

OUTAGE_SECONDS: Final = 60.0
"""How long a lost database is waited for, unless told otherwise: a restart or a failover."""

OUTAGE_VARIABLE: Final = "DARUMA_POSTGRES_OUTAGE_SECONDS"

BUSY_SECONDS: Final = 600.0
"""How long an operation waits for its turn where the database answers others.

With a thousand runs at once in a busy process some did not get one for a minute, by mere chance.
"""

_GLANCE_SECONDS: Final = 2.0
"""How long it may take to find out whether an idle connection is still good."""

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5


def seconds_of(given: float | None, variable: str) -> float:
    """Return how long to ride out: what was given, else the variable's text, else 60 s.

    Raises :class:`~daruma.state.settings.SettingsError`.
    """
    named = "outage_seconds" if given is not None else OUTAGE_VARIABLE
    try:
        seconds = float(variable or OUTAGE_SECONDS) if given is None else float(given)
    except (TypeError, ValueError):
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        told = variable if given is None else given
        from daruma.state.settings import SettingsError

        raise SettingsError(
            f"{named} must be a number of seconds, 0 or more, such as 60 (given: {told!r})"
        )
    return seconds


def pause(tries: int, luck: float) -> float:
    """Return the seconds before the next try after ``tries``; ``luck`` is between 0 and 1.

    They double up to half a second, and differ by half, so that not all come back at one moment.
    """
    longest: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(tries, 10))
    return longest * (0.5 + luck / 2)


@dataclass
class Patience:
    """How long an outage is ridden out, and when the database has last answered anybody."""

    seconds: float = OUTAGE_SECONDS
    place: str = "the database"
    busy_seconds: float = BUSY_SECONDS
    answered: float = field(default=-math.inf, init=False)

    async def over(self, operation: Callable[[], Awaitable[T]], pool: Pool) -> T:
        """Carry out an operation, again while the database is lost.

        Raises :class:`~daruma.state.errors.StorageUnavailable`, and at once what is no loss.
        """
        trying = _Trying(self)
        while True:
            trying.begin()
            try:
                done = await operation()
            except PoolClosed:
                raise StorageUnavailable(
                    f"{self.place} was closed here: a graph works for as long as the block of its "
                    "`open_postgres` lasts; open it again and build the graph on that, then "
                    "invoke(None, config) goes on with what had been begun"
                ) from None
            except Exception as error:
                if meaning_of(error) == "wrong":
                    raise
                wait = trying.wait_after(error)
                await _rid_of_lost_ones(pool, error)
            else:
                self.answered = monotonic()
                return done
            await asyncio.sleep(wait)


async def _rid_of_lost_ones(pool: Pool, error: Exception) -> None:
    """Close idle connections that were lost with the one that failed: who takes one fails too."""
    if leaves_connections_dead(error):
        await pool.drain()
    elif not isinstance(error, PoolTimeout):
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        with answers_within(_GLANCE_SECONDS):
            await pool.check()
        if task and task.cancelling() > before:  # the pool takes that for a lost connection
            raise asyncio.CancelledError


class _Trying:
    """The tries of one operation: when they began, and since when the database is lost."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._first = self._lost = self._began = monotonic()
        self._tries = 0
        self._cause = ""

    def begin(self) -> None:
        self._began = monotonic()

    def wait_after(self, error: Exception) -> float:
        """Return the seconds to wait. Raises StorageUnavailable when there is no use in that."""
        place, line = self._patience.place, error_line(error)
        if meaning_of(error) == "full":
            raise StorageUnavailable(
                f"{place} has no room left on its disk ({line}): nothing that was stored is lost; "
                "make room there, then `daruma resume THREAD`, or invoke(None, config), goes on"
            ) from error
        now, wait = monotonic(), pause(self._tries, random.random())  # noqa: S311 - no secret
        self._tries += 1
        if not isinstance(error, PoolTimeout):
            self._cause = line
        tried = now - self._first
        if isinstance(error, PoolTimeout) and self._patience.answered > self._began:
            self._lost = now  # others are answered meanwhile: it is busy, not lost
            if wait + tried > self._patience.busy_seconds:
                raise StorageUnavailable(
                    f"{place} was too busy with other runs of this process for {tried:.0f} s: "
                    "nothing that was stored is lost; with fewer at once, `daruma resume THREAD`, "
                    "or invoke(None, config), goes on from there"
                ) from error
        elif now + wait - self._lost > self._patience.seconds:
            raise StorageUnavailable(
                f"{place} was lost ({self._cause or line}) and did not come back within "
                f"{tried:.0f} s: nothing that was stored is lost; when it is back, "
                "`daruma resume THREAD`, or invoke(None, config), goes on from there"
            ) from error
        return wait


# --- The one way to the database: every operation of the saver, the lease, the journal goes
# through.
#
# An operation may be made twice, as nobody can tell whether one that was cut off took place: each
# is written so that a second time changes nothing.

Work = Callable[[Connection], Awaitable[T]]
"""What is done in one transaction. It may be begun again: it must not change anything else."""


@dataclass(frozen=True)
class Database:
    """A pool of connections, the loop that they live on, and how long an outage is ridden out."""

    pool: Pool
    loop: AbstractEventLoop
    patience: Patience = field(default_factory=Patience)

    async def patiently(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Carry out an operation on this database's own loop; one that was lost is made again.

        What takes the server longer than 8 s a statement is done within
        :func:`~daruma.graph.storage._pool.answers_within`. Raises
        :class:`~daruma.state.errors.StorageUnavailable` when the database stays lost.
        """
        return await self.patience.over(operation, self.pool)

    async def statement(self, statement: str, values: Values) -> list[DictRow]:
        """Carry out one statement, a transaction by itself, from any loop; return its rows."""

        async def once() -> list[DictRow]:
            connection = await self.pool.getconn()  # its context would commit: that is done already
            try:
                return await connection.carried_out(statement, values)
            finally:
                await self.pool.putconn(connection)

        return await on(self.loop, self.patiently(once))

    async def transact(self, work: Work[T]) -> T:
        """Do work in one transaction, from any loop."""

        async def once() -> T:
            async with self.pool.connection() as connection, connection.transaction():
                return await work(connection)

        return await on(self.loop, self.patiently(once))
