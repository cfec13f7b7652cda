"""Procrastinate's own tables, made beside ours when something is queued for the first time."""

from daruma.graph.storage.database import Database
from daruma.graph.storage.pool import Connection
from daruma.graph.workers.engine import SchemaManager
from daruma.graph.workers.task_names import IS_THERE


async def make_queue(database: Database) -> None:
    """Make the tables, one process after the other; in the schema that the connections work in."""
    if not await database.transact(_is_made):
        await database.transact(_make)


async def _is_made(connection: Connection) -> bool:
    row = await (await connection.execute(IS_THERE)).fetchone()
    return bool(row and row["there"])


async def _make(connection: Connection) -> None:
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext('daruma.queue'))")
    if not await _is_made(connection):
        await connection.execute(SchemaManager.get_schema())
