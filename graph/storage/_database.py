"""Connecting to Postgres: its tables, a pool, its connections, what its errors mean; and the one
way to the database, which rides out one that is lost (DU-04).
"""

import asyncio
import math
import random
import re
from asyncio import AbstractEventLoop
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, Final, Literal, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Error, InterfaceError, OperationalError
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import ConnectionTimeout, UndefinedTable
from psycopg.rows import DictRow, dict_row
from psycopg.waiting import Ready, Wait
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout
from typing_extensions import override

from daruma.graph.sync import on
from daruma.state.errors import OtherFormat, StorageUnavailable

# --- The tables in the database (``schema.sql``), and making them, whoever else is making them.

FORMAT: Final = 14
"""Counts changes of what is stored: a database of another format is refused, and left as it is."""

OF_A_THREAD: Final = ("daruma_replies", "daruma_questions", "daruma_effects", "daruma_outputs")
"""The tables whose rows belong to a thread, by ``thread_id``, and are deleted with it.

The lease is not among them: its token must not begin anew.
"""

GOING_WITH_A_THREAD: Final = ("daruma_events", "daruma_steering")
"""Deleted with it too; a copy has none of them: it told nothing, and was told nothing."""

_OTHER: Final = (
    "the database holds what another version of Daruma stored, which this one does not read "
    f"(its format is {FORMAT}): set DARUMA_POSTGRES_URL to an empty database, or remove the old "
    "one if nothing in it is needed (the embedded server's folder is in `daruma doctor`)"
)


async def make_tables(connection: AsyncConnection[Any]) -> None:
    """Make the tables in one transaction, one process after the other.

    The connection is in autocommit mode. A role that may not create tables is welcome when there is
    nothing to do. Raises :class:`~daruma.state.errors.OtherFormat`, and has then changed nothing.
    """
    if await _are_made(connection):
        return
    script = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.tables'))")
        await connection.execute(script.encode(), prepare=False)
        known = "INSERT INTO daruma_version VALUES (%s) ON CONFLICT DO NOTHING"
        await connection.execute(known, [FORMAT])


async def _are_made(connection: AsyncConnection[Any]) -> bool:
    try:
        found = await (await connection.execute("SELECT v FROM daruma_version")).fetchall()
    except UndefinedTable:
        return False
    versions = [row["v"] if isinstance(row, dict) else row[0] for row in found]
    if any(each != FORMAT for each in versions):
        raise OtherFormat(_OTHER)
    return bool(versions)


Values = Mapping[str, Any] | Sequence[Any]
"""What the placeholders of a statement stand for, by name or in their order."""

# --- What an error of the database means: that it is lost for now, is full, or was asked wrongly.

Meaning = Literal["lost", "full", "wrong"]
"""``lost`` may be over soon, and the same is tried again; the others it would not help."""

FULL: Final = "53100"
"""SQLSTATE of a disk that is full."""

READ_ONLY: Final = "25006"
"""SQLSTATE of a server that was the first one until a failover: another one is that now."""

_OVER_SOON: Final = frozenset(
    {
        READ_ONLY,
        "25P03",  # idle in a transaction for too long: this process was frozen
        "25P04",  # a transaction that took too long
        "40001",  # serialization failure
        "40003",  # statement completion unknown
        "40P01",  # deadlock
        "55P03",  # a lock was not to be had
        "57014",  # cancelled, by a time limit of the server or by its administrator
        "57P01",  # shut down, or the backend was terminated
        "57P02",  # another backend has crashed
        "57P03",  # starting up, shutting down, in recovery
        "57P05",  # idle for too long
    }
)
_KINDS_OVER_SOON: Final = ("08", "53")
"""Connections; resources that the server is short of for now."""


def meaning_of(error: BaseException) -> Meaning:
    """Read an error by its SQLSTATE; one without a state is told by its class."""
    if isinstance(error, ConnectionError):
        return "lost"
    if not isinstance(error, Error) or isinstance(error, PoolClosed):
        return "wrong"
    if error.sqlstate == FULL:
        return "full"
    if error.sqlstate:
        lost = error.sqlstate in _OVER_SOON or error.sqlstate.startswith(_KINDS_OVER_SOON)
    elif isinstance(error, InterfaceError):  # mostly a misuse
        lost = "closed" in str(error)
    else:
        lost = isinstance(error, OperationalError)
    return "lost" if lost else "wrong"


def leaves_connections_dead(error: BaseException) -> bool:
    """Whether other connections that seem to be good must be expected to be lost as well."""
    silent = isinstance(error, ConnectionTimeout)
    return silent or (isinstance(error, Error) and error.sqlstate == READ_ONLY)


def error_line(error: BaseException) -> str:
    """Return what an error says, as a part of one line."""
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return first.rsplit(" failed: ")[-1].removeprefix("FATAL:").strip()


# --- A connection that does not wait for ever: a server that has fallen silent is a lost one.

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

    async def carried_out(self, statement: str, values: Values) -> list[DictRow]:
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


# --- Connects to Postgres, or says in one line, without the password, why that is not possible.

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[LimitedConnection]

_CONNECT_SECONDS = 5
MOST_CONNECTIONS: Final = 10
"""To one database, unless it is told otherwise where that is opened."""

_WAIT_SECONDS = 5.0
"""For a connection; who did not get one looks whether the database is lost, and waits again."""

_RECONNECT_SECONDS = 0.25
"""The pool's own waits grow without a bound: it is begun anew, so that none is longer than this."""

_REFUSED_SECONDS = 5.0
_PAUSE_BETWEEN_TRIES = 0.1
_NOBODY_THERE = ("refused", "No such file or directory")
_OF_THE_URL = (
    "does not exist", "authentication failed", "no password supplied", "no pg_hba.conf entry",
    "not permitted to log in", "could not translate host name", "failed to resolve host",
    "permission denied", "does not support SSL", "certificate", "not supported",
)  # fmt: skip
"""Parts of errors that a URL meets however often it is tried: such errors have no SQLSTATE."""

_CONFIGURE_SECONDS = 2.0

_FORGOTTEN = "SET idle_in_transaction_session_timeout = '10s'"
"""What a connection that was cut off has locked is free again then; its retry waits for that."""


@asynccontextmanager
async def connected(
    url: str, *, outage_seconds: float = 60.0, connections: int = MOST_CONNECTIONS
) -> AsyncIterator[tuple[Pool, str]]:
    """Yield a pool of ``connections`` to a database with our tables, and the server's version.

    Waits at most 5 s for an answer, or the URL's own ``connect_timeout``. One that is lost is
    waited for, for ``outage_seconds``; where nobody listens, which may be no server's place, for
    5 s at most. Nobody waits for a connection of the pool for much longer. Raises
    :class:`StorageUnavailable`.
    """
    shown = display_url(url)
    given = str(conninfo_to_dict(url).get("connect_timeout", ""))
    seconds = int(given) if given.isdecimal() and int(given) else _CONNECT_SECONDS
    url = make_conninfo(url, connect_timeout=seconds)
    version = await _made_ready(url, shown, seconds, outage_seconds)
    opening: Pool = AsyncConnectionPool(
        url,
        connection_class=LimitedConnection,
        kwargs={"autocommit": True, "row_factory": dict_row},
        min_size=1,
        max_size=max(connections, 1),
        timeout=min(_WAIT_SECONDS, max(1.0, outage_seconds)),
        reconnect_timeout=_RECONNECT_SECONDS,
        reconnect_failed=AsyncConnectionPool.check,  # goes on connecting, for whoever waits
        configure=_configure,
        open=False,
        name="daruma",
    )
    async with opening as pool:
        yield pool, version


async def _made_ready(url: str, shown: str, seconds: int, outage_seconds: float) -> str:
    """Make our tables, and return the server's version; again while the server is lost (DU-04)."""
    began, refused, tries = monotonic(), min(outage_seconds, _REFUSED_SECONDS), 0
    while True:
        try:
            with explained(shown):
                async with asyncio.timeout(seconds):
                    first = await AsyncConnection.connect(url, autocommit=True)
                async with first:
                    await make_tables(first)
                    return first.info.parameter_status("server_version") or "unknown"
        except TimeoutError:
            raise _unavailable(shown, f"no answer within {seconds} s") from None
        except StorageUnavailable as error:
            lost = error.__cause__
            of_the_url = any(each in str(lost) for each in _OF_THE_URL)
            if lost is None or meaning_of(lost) != "lost" or of_the_url:
                raise error from None
            limit = refused if any(e in str(lost) for e in _NOBODY_THERE) else outage_seconds
            if monotonic() + _PAUSE_BETWEEN_TRIES > began + limit:
                raise error from None
        tries += 1
        await asyncio.sleep(min(_PAUSE_BETWEEN_TRIES * tries, 1.0))


@contextmanager
def explained(shown: str) -> Iterator[None]:
    """Turn an error of the database into a :class:`StorageUnavailable`, of one line (DU-04)."""
    try:
        yield
    except psycopg.Error as error:
        raise _unavailable(shown, error_line(error)) from error


@contextmanager
def explain_saver_errors() -> Iterator[None]:
    """Do the same for a checkpointer of LangGraph's own, which lets them through."""
    try:
        yield
    except psycopg.Error as error:
        raise StorageUnavailable(
            f"the checkpointer can not be used ({error_line(error)}): keep it open for as long as "
            "the graph is used, and call its setup() once"
        ) from error


def display_url(url: str) -> str:
    """Return a URL or connection string as it may be shown: user, host, port and database.

    Raises :class:`StorageUnavailable` when it can not be read, and then does not quote it.
    """
    if not isinstance(url, str):
        raise StorageUnavailable(f"the Postgres URL is a text, not {type(url).__name__}")
    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        raise _unreadable(url) from None
    user, host = parts.get("user"), parts.get("host") or parts.get("hostaddr", "")
    port, name = parts.get("port", ""), parts.get("dbname", "")
    # A / or @ in a password that is not percent-encoded makes libpq find pieces of it in these.
    if "@" in host + name or port.strip("0123456789,"):
        raise _unreadable(url)
    who = f"{user}@" if user else ""
    if host.startswith("/"):  # a socket's folder, as libpq takes it
        return f"postgresql://{who}/{name}?host={host}{f'&port={port}' if port else ''}"
    return f"postgresql://{who}{host}{f':{port}' if port else ''}/{name}"


async def _configure(connection: Connection) -> None:
    with answers_within(_CONFIGURE_SECONDS):
        await connection.execute(_FORGOTTEN)


def _unavailable(shown: str, reason: str) -> StorageUnavailable:
    return StorageUnavailable(
        f"Postgres at {shown} can not be used ({reason}): "
        "start or repair it, or set DARUMA_POSTGRES_URL to another one"
    )


def _unreadable(url: str) -> StorageUnavailable:
    scheme = re.match(r"([a-z][a-z0-9+:]{0,30})://", url)
    other = scheme is not None and scheme[1] not in ("postgresql", "postgres")
    begins = f" (it begins with {scheme[0]})" if scheme and other else ""
    return StorageUnavailable(
        f"the Postgres URL can not be read{begins}: it must be "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with special characters percent-encoded; "
        "set DARUMA_POSTGRES_URL to such a one"
    )


# --- Rides out a database that is lost: what failed is made again, for a bounded time (DU-04).

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
        :func:`~daruma.graph.storage._database.answers_within`. Raises
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
