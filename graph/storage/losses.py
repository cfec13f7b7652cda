"""What an error of the database means: that it is lost for now, is full, or was asked wrongly."""

from typing import Final, Literal

from psycopg import Error, InterfaceError, OperationalError
from psycopg.errors import ConnectionTimeout
from psycopg_pool import PoolClosed

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
    return "lost" if _is_over_soon(error) else "wrong"


def leaves_connections_dead(error: BaseException) -> bool:
    """Whether other connections that seem to be good must be expected to be lost as well."""
    silent = isinstance(error, ConnectionTimeout)
    return silent or (isinstance(error, Error) and error.sqlstate == READ_ONLY)


def reason(error: BaseException) -> str:
    """Return what an error says, as a part of one line."""
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return first.rsplit(" failed: ")[-1].removeprefix("FATAL:").strip()


def _is_over_soon(error: Error) -> bool:
    if error.sqlstate:
        return error.sqlstate in _OVER_SOON or error.sqlstate.startswith(_KINDS_OVER_SOON)
    if isinstance(error, InterfaceError):  # mostly a misuse
        return "closed" in str(error)
    return isinstance(error, OperationalError)
