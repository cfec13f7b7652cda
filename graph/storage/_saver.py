"""Our checkpointer as it is handed out: with what belongs to a thread beside its checkpoints, and
what can be done with whole threads: deleted, copied, thinned, each held meanwhile (DU-03).
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from functools import partial
from typing import Any, Final, LiteralString, NamedTuple, Self

from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import sql
from psycopg.types.json import Jsonb

from daruma.graph.storage._checkpoints import CheckpointSaver, checked_id
from daruma.graph.storage._database import Database
from daruma.graph.storage._events import EventLog
from daruma.graph.storage._journal import PostgresJournal, PostgresOutputs, PostgresReplies
from daruma.graph.storage._leases import PostgresLeases
from daruma.graph.storage._ledgers import Leases, Place, athread_held
from daruma.graph.storage._maintenance import THREADS_OF, remove_runs, thin
from daruma.graph.storage._pool import GOING_WITH_A_THREAD, OF_A_THREAD, Connection, make_tables
from daruma.graph.storage._rows import WRITE_PLACE, checked, damage_at, marked
from daruma.graph.storage._sealing import Checked, Sealing
from daruma.graph.sync import run
from daruma.state.errors import DarumaError

# --- Copying the rows of a sealed thread: each value is opened, and sealed in its new place.
#
# Where values are not hidden they are bound to no thread, and a copy by the database alone will do.

Row = Mapping[str, Any]

_AT_ONCE: Final = 100
"""Rows that are held in memory."""


class _Sealed(NamedTuple):
    """Where a table has the kind of a value and its bytes, and which place they are sealed in."""

    kind: str
    payload: str
    place: Callable[[Row], Sequence[str]]


def _columns(*names: str) -> Callable[[Row], Sequence[str]]:
    return lambda row: [str(row[name]) for name in names]


_SEALED: Final = {
    "daruma_blobs": _Sealed("type", "blob", _columns("checkpoint_ns", "channel", "version")),
    "daruma_writes": _Sealed("type", "blob", _columns(*WRITE_PLACE)),
    "daruma_replies": _Sealed("kind", "reply", lambda row: ("reply", row["interrupt_id"])),
    "daruma_effects": _Sealed("kind", "outcome", lambda row: ("effect", row["key"])),
    "daruma_outputs": _Sealed("kind", "output", lambda row: ("output", row["id"])),
}
"""By table; each place begins with the thread."""


async def copy_sealed(
    connection: Connection, table: str, source: str, target: str, sealing: Sealing
) -> None:
    """Copy a thread's rows of one table, within a transaction; those that are there stay.

    Raises :class:`~daruma.state.errors.DamagedState` for what is damaged.
    """
    found = sql.SQL("SELECT * FROM {} WHERE thread_id = %s").format(sql.Identifier(table))
    async with connection.cursor(name="source") as cursor:
        await cursor.execute(found, [source])
        while rows := await cursor.fetchmany(_AT_ONCE):
            copies = [_copy(table, row, target, sealing) for row in rows]
            insertion = sql.SQL("INSERT INTO {} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, rows[0])),
                sql.SQL(", ").join(map(sql.Placeholder, rows[0])),
            )
            async with connection.cursor() as into:
                await into.executemany(insertion, copies)


def _copy(table: str, row: Row, target: str, sealing: Sealing) -> dict[str, Any]:
    copy = {**row, "thread_id": target}
    own = _SEALED.get(table)
    if table == "daruma_checkpoints":
        return copy | _noted(row, target, sealing)
    if own and row[own.payload] is not None:
        place = own.place(row)
        value = sealing.open((row[own.kind], row[own.payload]), (row["thread_id"], *place))
        copy[own.kind], copy[own.payload] = sealing.seal(value, (target, *place))
    return copy


def _noted(row: Row, target: str, sealing: Sealing) -> dict[str, Any]:
    """Return the copy of what a checkpoint's row holds in clear, beneath a mark of its own."""
    metadata = row["metadata"]
    within = row["checkpoint_ns"], row["checkpoint_id"]
    with damage_at(row["thread_id"], *within):
        place = row["thread_id"], *within
        kept, manifest = checked(row["checkpoint"], metadata, within[1], place, sealing)
    copied = marked(kept, metadata, manifest, (target, *within), sealing)
    return {"checkpoint": Jsonb(copied), "metadata": Jsonb(metadata)}


# --- The rows of one thread: all of them deleted, or copied to another thread.

TABLES: Final[tuple[LiteralString, ...]] = (
    "daruma_checkpoints",
    "daruma_blobs",
    "daruma_writes",
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
SELECT FROM daruma_checkpoints theirs WHERE thread_id = %s AND NOT EXISTS (
    SELECT FROM daruma_checkpoints own
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


# --- The checkpointer as it is handed out.


class PostgresSaver(CheckpointSaver):
    """A checkpointer over a pool of connections, for callers on any thread and any event loop."""

    def __init__(
        self, database: Database, serde: SerializerProtocol, sealing: Sealing | None = None
    ) -> None:
        super().__init__(database, serde, sealing or Checked())
        self.replies = PostgresReplies(database, serde, self.sealing)
        self.own_leases = PostgresLeases(database)
        self.leases: Leases = self.own_leases
        self.events = EventLog(database, self.sealing)

    def leasing(self, leases: Leases) -> Self:
        """Return a saver over the same data that takes threads in another way."""
        own = copy(self)
        own.leases = leases
        return own

    def journal_at(self, place: Place, run: str) -> PostgresJournal:
        """Return the journal of effects for a place of a thread, as one run keeps it."""
        return PostgresJournal(self.statement, self.serde, self.sealing, place, run)

    @property
    def outputs(self) -> PostgresOutputs:
        """Where large outputs are kept; with a hold, each is kept under it."""
        return PostgresOutputs(self.statement, self.sealing)

    async def setup(self) -> None:
        """Make the tables; any number of processes may do so at once."""

        async def make() -> None:
            async with self.database.pool.connection() as connection:
                await make_tables(connection)

        await self.home(make)

    # --- What it can do with whole threads, each held meanwhile: nobody runs it (DU-03).

    @asynccontextmanager
    async def holding(self, thread_id: str) -> AsyncIterator[Self]:
        """Hold a thread, unless this saver does.

        Raises :class:`~daruma.state.errors.ThreadBusy`.
        """
        if self.hold and self.hold.thread_id == thread_id:
            yield self
        else:
            async with athread_held(self, thread_id) as own:
                yield own

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread with all that belongs to it in the database, in one transaction."""
        thread_id = checked_id(thread_id)
        async with self.holding(thread_id) as own:
            await own.transact(partial(delete_rows, thread_id=thread_id))

    def delete_thread(self, thread_id: str) -> None:
        run(self.adelete_thread(thread_id), loop=self.loop)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with its whole history to a name that is free.

        Raises :class:`ThreadTaken` for one that is not.
        """
        source, target = checked_id(source_thread_id), checked_id(target_thread_id)
        if source == target:
            return
        copy_all = partial(copy_rows, source=source, target=target, sealing=self.sealing)
        async with self.holding(source), self.holding(target) as own:
            await own.transact(copy_all)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        run(self.acopy_thread(source_thread_id, target_thread_id), loop=self.loop)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Take runs back, wherever they are: ``run_id`` in their config's metadata names them."""
        ids = [*map(str, run_ids)]
        for row in await self.database.statement(THREADS_OF, [ids]):
            async with self.holding(row["thread_id"]) as own:
                await remove_runs(own, row["thread_id"], ids)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        run(self.adelete_for_runs(run_ids), loop=self.loop)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete threads, or keep but their newest checkpoint, one after the other.

        Raises ``TypeError`` and ``ValueError`` as LangGraph's own does.
        """
        if isinstance(thread_ids, str):
            raise TypeError("thread_ids must be a sequence of thread ids, not a text")
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"the strategy {strategy!r} is neither 'keep_latest' nor 'delete'")
        for thread_id in [*map(checked_id, thread_ids)]:
            async with self.holding(thread_id) as own:
                if strategy == "keep_latest":
                    await thin(own, thread_id)
                else:
                    await own.transact(partial(delete_rows, thread_id=thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        run(self.aprune(thread_ids, strategy=strategy), loop=self.loop)
