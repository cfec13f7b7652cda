"""Which errors of the database are worth another try."""

import pytest
from psycopg import InterfaceError, OperationalError, errors
from psycopg_pool import PoolClosed, PoolTimeout

from daruma.graph.storage.pool import Meaning, leaves_connections_dead, meaning_of, reason
from daruma.state.errors import DamagedState, HoldLost

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

    assert reason(error) == "no"
    assert reason(OperationalError()) == "OperationalError"
