"""The rows of one thread: all of them deleted, or copied to another thread."""

from typing import Final, LiteralString

from psycopg import sql

from daruma.graph.storage.pool import Connection
from daruma.graph.storage.rebinding import copy_sealed
from daruma.graph.storage.schema import GOING_WITH_A_THREAD, OF_A_THREAD
from daruma.graph.storage.sealing import Sealing
from daruma.state.errors import DarumaError

TABLES: Final[tuple[LiteralString, ...]] = (
    "checkpoints",
    "checkpoint_blobs",
    "checkpoint_writes",
    *OF_A_THREAD,
)
"""All that is kept of a thread in the database, but for its lease, whose token must only grow."""

_COLUMNS: Final = """
SELECT column_name AS name FROM information_schema.columns
WHERE table_schema = ANY(current_schemas(false)) AND table_name = %s AND column_name <> 'thread_id'
"""
_QUEUE: Final = """
SELECT FROM pg_class WHERE relname = 'procrastinate_jobs' AND pg_table_is_visible(oid)
"""
_JOBS: Final = """
DELETE FROM procrastinate_jobs
WHERE lock = %s AND status = 'todo' AND starts_with(task_name, 'daruma.')
"""
_OTHERS: Final = """
SELECT FROM checkpoints theirs WHERE thread_id = %s AND NOT EXISTS (
    SELECT FROM checkpoints own
    WHERE own.thread_id = %s AND own.checkpoint_id = theirs.checkpoint_id
) LIMIT 1
"""


class ThreadTaken(DarumaError):
    """Raised when a thread is to be copied to one that has a history of its own."""


async def delete_rows(connection: Connection, thread_id: str) -> None:
    """Delete a thread, with the jobs that wait for it; one that is not there is no error."""
    for table in (*TABLES, *GOING_WITH_A_THREAD):
        rows = sql.SQL("DELETE FROM {} WHERE thread_id = %s").format(sql.Identifier(table))
        await connection.execute(rows, [thread_id])
    if (await connection.execute(_QUEUE)).rowcount:
        await connection.execute(_JOBS, [thread_id])


async def copy_rows(connection: Connection, source: str, target: str, sealing: Sealing) -> None:
    """Copy a thread with its whole history; made again, it changes nothing.

    The journal comes along: what was begun in the source and may have happened is as much in doubt
    in the copy. Raises :class:`ThreadTaken`, and where values are sealed
    :class:`~daruma.state.errors.DamagedState`.
    """
    if (await connection.execute(_OTHERS, [target, source])).rowcount:
        raise ThreadTaken(f"thread {target!r} has a history of its own: copy to a new name")
    for table in TABLES:
        if sealing.hides:
            await copy_sealed(connection, table, source, target, sealing)
            continue
        named = await (await connection.execute(_COLUMNS, [table])).fetchall()
        columns = sql.SQL(", ").join(sql.Identifier(each["name"]) for each in named)
        rows = sql.SQL(
            "INSERT INTO {table} (thread_id, {columns})"
            " SELECT %s, {columns} FROM {table} WHERE thread_id = %s ON CONFLICT DO NOTHING"
        ).format(table=sql.Identifier(table), columns=columns)
        await connection.execute(rows, [target, source])
