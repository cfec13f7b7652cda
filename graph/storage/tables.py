"""Makes the checkpointer's tables, whoever else is making them at the same moment."""

from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable

from daruma.graph.storage import replies, settings_seen


class _Tables(AsyncPostgresSaver):
    """The stock tables, with indexes made in the transaction that makes all the rest.

    Made ``CONCURRENTLY``, they would wait for every process that waits for the lock below.
    """

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        super().__init__(connection)
        self.MIGRATIONS = [each.replace("CONCURRENTLY", "") for each in self.MIGRATIONS]


_MADE = """
SELECT FROM checkpoint_migrations
WHERE v >= %s AND to_regclass('daruma_replies') IS NOT NULL
AND to_regclass('daruma_settings_seen') IS NOT NULL
"""


async def make_tables(connection: AsyncConnection[Any]) -> None:
    """Make or update the tables in one transaction, one process after the other.

    The connection is in autocommit mode. A role that may not create tables is welcome when there is
    nothing to do.
    """
    if await _are_made(connection):
        return
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.tables'))")
        await _Tables(connection).setup()
        for table in (replies.MAKE, settings_seen.MAKE):
            await connection.execute(table)


async def _are_made(connection: AsyncConnection[Any]) -> bool:
    newest = len(_Tables.MIGRATIONS) - 1
    try:
        found = await connection.execute(_MADE, [newest])
    except UndefinedTable:
        return False
    return found.rowcount > 0
