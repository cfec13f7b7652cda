"""Makes the checkpointer's tables, whoever else is making them at the same moment."""

from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.errors import UndefinedTable

from daruma.graph.storage.schema import OURS, VERSION


class _Tables(AsyncPostgresSaver):
    """The stock tables, with indexes made in the transaction that makes all the rest.

    Made ``CONCURRENTLY``, they would wait for every process that waits for the lock below.
    """

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        super().__init__(connection)
        self.MIGRATIONS = [each.replace("CONCURRENTLY", "") for each in self.MIGRATIONS]


_VERSION_OF = """
CREATE TABLE IF NOT EXISTS daruma_version (v integer PRIMARY KEY)
"""
_MADE = """
SELECT FROM checkpoint_migrations, daruma_version
WHERE checkpoint_migrations.v >= %s AND daruma_version.v >= %s
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
        for made in (*OURS, _VERSION_OF):
            await connection.execute(made)
        known = "INSERT INTO daruma_version VALUES (%s) ON CONFLICT DO NOTHING"
        await connection.execute(known, [VERSION])


async def _are_made(connection: AsyncConnection[Any]) -> bool:
    newest = len(_Tables.MIGRATIONS) - 1
    try:
        found = await connection.execute(_MADE, [newest, VERSION])
    except UndefinedTable:
        return False
    return found.rowcount > 0
