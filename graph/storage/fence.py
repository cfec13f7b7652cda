"""Who may write on a thread: asserted within the transaction of each write (DU-03).

The row of the lease is locked for reading until the write is committed, so that nobody can take the
thread over in between.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from psycopg import DatabaseError
from psycopg.rows import DictRow

from daruma.graph.leases import Hold
from daruma.state.errors import HoldLost

ASSERT: Final = "SELECT daruma_fence(%s, %s)"
FENCE: Final = """
fence AS MATERIALIZED (
    SELECT CASE WHEN %(token)s::bigint IS NOT NULL THEN daruma_fence(%(holding)s, %(token)s) END
)
"""
"""The same as a part of one statement, which has to read from it: else it is left out."""

Statement = Callable[[str, Mapping[str, Any]], Awaitable[list[DictRow]]]
"""Carries out one statement, a transaction by itself, with what FENCE takes; returns its rows."""

_LOST: Final = "DR001"


def fence_of(hold: Hold | None) -> dict[str, Any]:
    """Return what FENCE takes; without a hold, it lets everything pass."""
    return {
        "holding": hold.thread_id if hold else None,
        "token": hold.token if hold else None,
    }


@contextmanager
def lost_by(hold: Hold | None) -> Iterator[None]:
    """Say in our words that the fence did not let a write pass.

    Raises :class:`~daruma.state.errors.HoldLost`.
    """
    try:
        yield
    except DatabaseError as error:
        if hold and error.sqlstate == _LOST:
            raise HoldLost(hold.thread_id) from None
        raise
