"""Connecting to Postgres: a pool, its connections, and what its errors mean."""

import asyncio
from collections.abc import Generator
from inspect import GEN_CREATED, getgeneratorstate
from typing import Any

import pytest
from psycopg import InterfaceError, OperationalError, errors
from psycopg.errors import ConnectionTimeout, DivisionByZero
from psycopg.errors import OperationalError as OperationalErrorConnection
from psycopg.rows import dict_row
from psycopg.waiting import Ready, Wait
from psycopg_pool import PoolClosed, PoolTimeout
from tests.fault_proxy import fault_proxy, once, passing

from daruma.graph.storage import error_line
from daruma.graph.storage._database import (
    LimitedConnection,
    Meaning,
    answers_within,
    leaves_connections_dead,
    meaning_of,
)
from daruma.state.errors import DamagedState, HoldLost

# --- Which errors of the database are worth another try.

MEANINGS: list[tuple[Exception, Meaning]] = [
    (errors.AdminShutdown("terminating connection"), "lost"),
    (errors.CrashShutdown("another process crashed"), "lost"),
    (errors.CannotConnectNow("the database system is starting up"), "lost"),
    (errors.IdleInTransactionSessionTimeout("frozen"), "lost"),
    (errors.SerializationFailure("again"), "lost"),
    (errors.DeadlockDetected("again"), "lost"),
    (errors.ReadOnlySqlTransaction("a failover"), "lost"),
    (errors.TooManyConnections("full house"), "lost"),
    (errors.ConnectionFailure("08006"), "lost"),
    (errors.QueryCanceled("statement timeout"), "lost"),
    (errors.ConnectionTimeout("no answer within 8 s"), "lost"),
    (OperationalError("consuming input failed: server closed the connection"), "lost"),
    (InterfaceError("the connection is closed"), "lost"),
    (ConnectionResetError("reset by peer"), "lost"),
    (PoolTimeout("no connection"), "lost"),
    (errors.DiskFull("could not extend file"), "full"),
    (errors.UndefinedTable("no such table"), "wrong"),
    (errors.InsufficientPrivilege("permission denied"), "wrong"),
    (errors.UniqueViolation("twice"), "wrong"),
    (errors.DatabaseDropped("gone for good"), "wrong"),
    (InterfaceError("binary copy is not like that"), "wrong"),
    (PoolClosed("closed by us"), "wrong"),
    (DamagedState("damaged"), "wrong"),
    (HoldLost("t"), "wrong"),
    (TimeoutError("somebody else's"), "wrong"),
    (ValueError("a bug"), "wrong"),
]


@pytest.mark.parametrize(("error", "meaning"), MEANINGS, ids=lambda each: repr(each)[:40])
def test_what_may_be_over_soon_is_lost_and_all_else_is_not(error: Exception, meaning: str) -> None:
    """By SQLSTATE where the server has told one."""
    assert meaning_of(error) == meaning


def test_silence_and_a_failover_concern_all_connections() -> None:
    """Those that lie idle were lost at the same moment, and do not know it yet."""
    assert leaves_connections_dead(errors.ConnectionTimeout("silent"))
    assert leaves_connections_dead(errors.ReadOnlySqlTransaction("a failover"))
    assert not leaves_connections_dead(errors.AdminShutdown("one backend"))


def test_a_reason_is_a_part_of_one_line() -> None:
    """What libpq says is longer, and an error may say nothing."""
    error = OperationalError('connection to server at "h" failed: FATAL:  no\nmore of it')

    assert error_line(error) == "no"
    assert error_line(OperationalError()) == "OperationalError"


# --- A connection waits so long for an answer, and not for ever (DU-04).


async def connected(url: str) -> LimitedConnection:
    return await LimitedConnection.connect(url, autocommit=True, row_factory=dict_row)


async def test_a_server_that_has_fallen_silent_is_a_lost_one(postgres_server: str) -> None:
    """The connection is closed with it: an answer that comes late would be to another question."""
    with fault_proxy(postgres_server) as proxy:
        connection = await connected(proxy.url)
        proxy.count_from_here(once(0, "swallow"))

        with answers_within(0.2), pytest.raises(ConnectionTimeout, match=r"within 0\.2 s"):
            await connection.execute("SELECT 1")

        assert connection.closed


async def test_a_slow_answer_is_an_answer(postgres_server: str) -> None:
    """Each message is waited for on its own, and what was given is over with its block."""
    async with await connected(postgres_server) as connection:
        with answers_within(0.1), pytest.raises(ConnectionTimeout):
            await connection.execute("SELECT pg_sleep(5)")
    async with await connected(postgres_server) as connection:
        await connection.execute("SELECT pg_sleep(0.2)")


async def test_a_cancelled_wait_ends_at_once(postgres_server: str) -> None:
    """psycopg asks the server to cancel, and waits 5 s and more for one that does not answer."""
    with fault_proxy(postgres_server) as proxy:
        connection = await connected(proxy.url)
        proxy.count_from_here(once(0, "swallow"))
        waiting = asyncio.create_task(connection.execute("SELECT 1"))
        await asyncio.to_thread(proxy.faulted.wait)

        waiting.cancel()
        async with asyncio.timeout(2):
            with pytest.raises(asyncio.CancelledError):
                await waiting

        assert connection.closed
        assert proxy.fate is not passing


async def test_a_lost_connection_begins_nothing(postgres_server: str) -> None:
    """What was begun on it would clean up after itself, on a socket that is not there."""

    def question() -> Generator[Wait, Ready, None]:
        yield Wait.R

    connection = await connected(postgres_server)
    connection.pgconn.finish()
    asked: Any = question()

    with pytest.raises(OperationalErrorConnection):
        await connection.wait(asked)

    assert getgeneratorstate(asked) == GEN_CREATED


async def test_a_statement_that_comes_again_takes_other_values(postgres_server: str) -> None:
    """Of other types too, and after one that failed; what gives no rows has none."""
    statement = "SELECT %(a)s::text AS a, 1 / %(b)s::int AS b"
    async with await connected(postgres_server) as connection:
        first = await connection.carried_out(statement, {"a": "one", "b": 1})
        with pytest.raises(DivisionByZero):
            await connection.carried_out(statement, {"a": "one", "b": 0})
        second = await connection.carried_out(statement, {"a": None, "b": -1})
        none = await connection.carried_out("SET application_name = 'x'", {})

    assert [tuple(each.values()) for each in (*first, *second)] == [("one", 1), (None, -1)]
    assert none == []


@pytest.mark.long
async def test_more_than_a_socket_takes_at_once_is_sent_and_read(postgres_server: str) -> None:
    """It waits for being read and written by turns."""
    long = "x" * 20_000_000
    async with await connected(postgres_server) as connection:
        (found,) = await connection.carried_out("SELECT %(long)s::text AS x", {"long": long})

    assert found == {"x": long}
