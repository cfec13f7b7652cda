"""The space that threads take in the database, and giving it back (DU-08)."""

from typing import Final

from psycopg import sql

from daruma.graph.storage.connection import answers_within
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.saver import PostgresSaver
from daruma.graph.storage.schema import GOING_WITH_A_THREAD
from daruma.graph.storage.thread_rows import TABLES

_SIZE: Final = """
SELECT (SELECT coalesce(sum(pg_column_size(blob) + 100), 0)
        FROM checkpoint_blobs WHERE thread_id = %(thread)s)
    + (SELECT coalesce(sum(pg_column_size(blob) + 100), 0)
       FROM checkpoint_writes WHERE thread_id = %(thread)s)
    + (SELECT coalesce(sum(pg_column_size(checkpoint) + pg_column_size(metadata) + 200), 0)
       FROM checkpoints WHERE thread_id = %(thread)s)
    + (SELECT coalesce(sum(pg_column_size(output) + 100), 0)
       FROM daruma_outputs WHERE thread_id = %(thread)s) AS size
"""
_TOTAL: Final = """
SELECT sum(pg_total_relation_size(name::regclass)) AS size FROM unnest(%s::text[]) AS name
"""

_VACUUM_SECONDS: Final = 3600.0
"""For one table: a full vacuum writes all of it anew, which takes minutes where there is much."""


async def size_of(saver: PostgresSaver, thread_id: str) -> int:
    """Return the bytes of a thread's rows, about."""

    async def measure(connection: Connection) -> int:
        row = await (await connection.execute(_SIZE, {"thread": thread_id})).fetchone()
        return int(row["size"]) if row else 0

    return await saver.transact(measure)


async def total(saver: PostgresSaver) -> int:
    """Return the bytes of all tables that hold threads, as they lie on the disk."""

    async def measure(connection: Connection) -> int:
        row = await (await connection.execute(_TOTAL, [list(TABLES)])).fetchone()
        return int(row["size"]) if row else 0

    return await saver.transact(measure)


async def vacuum(saver: PostgresSaver, *, full: bool = False) -> None:
    """Make the space of deleted rows usable again; ``full`` gives it back to the disk.

    A full one copies each table and lets nobody read or write it meanwhile. A role that may not do
    it leaves it to the server's own autovacuum.
    """
    how = sql.SQL("VACUUM (FULL, ANALYZE) {}" if full else "VACUUM (ANALYZE) {}")

    async def clean() -> None:
        with answers_within(_VACUUM_SECONDS):
            async with saver.database.pool.connection() as connection:
                for table in (*TABLES, *GOING_WITH_A_THREAD):
                    await connection.execute(how.format(sql.Identifier(table)))

    await saver.home(clean)
