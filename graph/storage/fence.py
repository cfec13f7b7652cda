"""Who may write on a thread: asserted within the transaction of each write (DU-03).

The row of the lease is locked for reading until the write is committed, so that nobody can take the
thread over in between.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from psycopg import DatabaseError

from daruma.graph.leases import Hold
from daruma.state.storage import HoldLost

ASSERT: Final = "SELECT daruma_fence(%s, %s)"
_LOST: Final = "DR001"


@contextmanager
def lost_by(hold: Hold | None) -> Iterator[None]:
    """Say in our words that the fence did not let a write pass.

    Raises :class:`~daruma.state.storage.HoldLost`.
    """
    try:
        yield
    except DatabaseError as error:
        if hold and error.sqlstate == _LOST:
            raise HoldLost(hold.thread_id) from None
        raise
