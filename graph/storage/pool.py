"""Connects to Postgres, or says in one line, without the password, why that is not possible."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool

from daruma.graph.storage.connection import LimitedConnection, answers_within
from daruma.graph.storage.losses import reason
from daruma.graph.storage.tables import make_tables
from daruma.state.errors import StorageUnavailable

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[LimitedConnection]

_CONNECT_SECONDS = 5
_MAX_CONNECTIONS = 10
_WAIT_SECONDS = 5.0
"""For a connection; who did not get one looks whether the database is lost, and waits again."""

_RECONNECT_SECONDS = 0.25
"""The pool's own waits grow without a bound: it is begun anew, so that none is longer than this."""

_CONFIGURE_SECONDS = 2.0

_FORGOTTEN = "SET idle_in_transaction_session_timeout = '10s'"
"""What a connection that was cut off has locked is free again then; its retry waits for that."""


@asynccontextmanager
async def connected(url: str, *, outage_seconds: float = 60.0) -> AsyncIterator[tuple[Pool, str]]:
    """Yield a pool of connections to a database with our tables, and the server's version.

    Waits at most 5 s for an answer, or the URL's own ``connect_timeout``. Nobody waits for a
    connection of the pool for much longer than ``outage_seconds``. Raises
    :class:`StorageUnavailable`.
    """
    shown = display_url(url)
    seconds = _timeout(url)
    url = make_conninfo(url, connect_timeout=seconds)
    try:
        async with asyncio.timeout(seconds):
            first = await _connect(url)
        async with first:
            await make_tables(first)
            version = first.info.parameter_status("server_version") or "unknown"
    except TimeoutError:
        raise _unavailable(shown, f"no answer within {seconds} s") from None
    except psycopg.Error as error:
        raise _unavailable(shown, reason(error)) from None
    async with _pool(url, outage_seconds) as pool:
        yield pool, version


def display_url(url: str) -> str:
    """Return a URL or connection string as it may be shown: user, host, port and database.

    Raises :class:`StorageUnavailable` when it can not be read, and then does not quote it.
    """
    try:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        raise _unreadable() from None
    user, host = parts.get("user"), parts.get("host") or parts.get("hostaddr", "")
    port, name = parts.get("port", ""), parts.get("dbname", "")
    # A / or @ in a password that is not percent-encoded makes libpq find pieces of it in these.
    if "@" in host + name or port.strip("0123456789,"):
        raise _unreadable()
    place = f"{f'{user}@' if user else ''}{host}{f':{port}' if port else ''}"
    return f"postgresql://{place}/{name}"


def _timeout(url: str) -> int:
    given = str(conninfo_to_dict(url).get("connect_timeout", ""))
    return int(given) if given.isdecimal() and int(given) else _CONNECT_SECONDS


def _pool(url: str, outage_seconds: float) -> Pool:
    return AsyncConnectionPool(
        url,
        connection_class=LimitedConnection,
        kwargs={"autocommit": True, "row_factory": dict_row},
        min_size=1,
        max_size=_MAX_CONNECTIONS,
        timeout=min(_WAIT_SECONDS, max(1.0, outage_seconds)),
        reconnect_timeout=_RECONNECT_SECONDS,
        reconnect_failed=_try_again,
        configure=_configure,
        open=False,
        name="daruma",
    )


async def _try_again(pool: Pool) -> None:
    """Go on connecting, for whoever waits, and for whoever will."""
    await pool.check()


async def _configure(connection: Connection) -> None:
    with answers_within(_CONFIGURE_SECONDS):
        await connection.execute(_FORGOTTEN)


async def _connect(url: str) -> AsyncConnection[Any]:
    while True:
        try:
            return await AsyncConnection.connect(url, autocommit=True)
        except psycopg.OperationalError as error:
            if "the database system is" not in str(error):  # starting up, shutting down
                raise
            await asyncio.sleep(0.1)


def _unavailable(shown: str, reason: str) -> StorageUnavailable:
    return StorageUnavailable(
        f"Postgres at {shown} can not be used ({reason}): "
        "start or repair it, or set DARUMA_POSTGRES_URL to another one"
    )


def _unreadable() -> StorageUnavailable:
    return StorageUnavailable(
        "the Postgres URL can not be read: it must be postgresql://USER:PASSWORD@HOST:PORT/DATABASE,"
        " with special characters percent-encoded"
    )
