"""Our checkpointer as it is handed out: with what belongs to a thread beside its checkpoints, and
what can be done with whole threads: deleted, copied, thinned, runs of theirs taken back, each held
meanwhile (DU-03). What stays is made whole (DU-08).
"""

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, LiteralString, NamedTuple, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import INTERRUPT
from psycopg import sql
from psycopg.types.json import Jsonb

from daruma.graph.storage._checkpoints import CheckpointSaver, checked_id
from daruma.graph.storage._database import (
    GOING_WITH_A_THREAD,
    OF_A_THREAD,
    Connection,
    Database,
    make_tables,
)
from daruma.graph.storage._events import EventLog
from daruma.graph.storage._journal import PostgresJournal, PostgresOutputs, PostgresReplies
from daruma.graph.storage._leases import PostgresLeases
from daruma.graph.storage._ledgers import Leases, Place, athread_held
from daruma.graph.storage._rows import WRITE_PLACE, blob_row, checked, config_of, damage_at, marked
from daruma.graph.storage._sealing import Checked, Sealing
from daruma.graph.sync import run
from daruma.state.errors import DamagedState, DarumaError
from daruma.state.serializer import DeltaSnapshot

# --- Changing a checkpoint's row that is there, so that it still says what it is afterwards.

_ROW: Final = """
SELECT checkpoint, metadata FROM daruma_checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s FOR UPDATE
"""
_PUT: Final = """
UPDATE daruma_checkpoints SET parent_checkpoint_id = %s, checkpoint = %s, metadata = %s
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""
_COUNTERS: Final = "counters_since_delta_snapshot"

At = tuple[str, str, str]
"""A checkpoint: its thread, namespace and id."""


async def renew(
    connection: Connection, at: At, parent: str | None, snapshots: Collection[str], sealing: Sealing
) -> None:
    """Give a checkpoint another parent, and whole copies of channels, which are stored already.

    It counts no writes of its parent any more: it is not replayed from them. Raises
    :class:`~daruma.state.errors.DamagedState` for a damaged row.
    """
    row = await (await connection.execute(_ROW, at)).fetchone()
    if row is None:
        raise LookupError(f"checkpoint {at[2]} of thread {at[0]!r} is gone")
    metadata = row["metadata"]
    with damage_at(*at):
        checkpoint, manifest = checked(row["checkpoint"], metadata, at[2], at, sealing)
    if _COUNTERS in metadata:
        left = {k: v for k, v in metadata[_COUNTERS].items() if k not in snapshots}
        metadata = metadata | {_COUNTERS: left}
    values = (checkpoint.get("channel_values") or {}) | dict.fromkeys(snapshots, True)
    blobs = sorted({*manifest["blobs"], *snapshots})
    made = marked(
        checkpoint | {"channel_values": values},
        metadata,
        {"blobs": blobs, "parent": parent, "writes": {}},
        at,
        sealing,
    )
    await connection.execute(_PUT, [parent, Jsonb(made), Jsonb(metadata), *at])


# --- What belongs to checkpoints beside them: replies to what they asked, calls made from them.

_PASSED: Final = """
DELETE FROM daruma_effects AS passed
WHERE thread_id = %s AND outcome IS NOT NULL AND checkpoint_id <> ALL(%s)
AND EXISTS (
    SELECT FROM daruma_checkpoints AS going
    WHERE going.thread_id = passed.thread_id AND going.checkpoint_ns = passed.checkpoint_ns
    AND going.checkpoint_id = passed.checkpoint_id
)
"""
"""What came of calls made from checkpoints that are about to go. What is in doubt stays.

So does a call whose checkpoint a crash lost: it can be made once more.
"""
_ASKING: Final = """
SELECT DISTINCT checkpoint_id AS id FROM daruma_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND %s = ANY(channels) AND checkpoint_id = ANY(%s)
"""


async def asked_at(
    saver: CheckpointSaver, thread_id: str, ns: str, ids: Collection[str]
) -> frozenset[str]:
    """Return the ids of the questions that were put at some checkpoints.

    Those of a damaged one are left out: nothing can ask them again.
    """

    async def asking(connection: Connection) -> list[str]:
        found = await connection.execute(_ASKING, [thread_id, ns, INTERRUPT, list(ids)])
        return [row["id"] for row in await found.fetchall()]

    asked = set[str]()
    for checkpoint in await saver.transact(asking):
        with suppress(DamagedState):
            found = await saver.aget_tuple(config_of(thread_id, ns, checkpoint))
            for _, channel, value in (found and found.pending_writes) or ():
                asked |= {each.id for each in value} if channel == INTERRUPT else set()
    return frozenset(asked)


# --- Making a checkpoint stand on its own: what its channels hold, without the history before it.
#
# A delta channel is kept as writes; its value is found by going back to the last whole copy. Before
# that history is deleted, the copy is put into the checkpoint that stays (LangGraph's saver
# refuses).

_PUT_WHOLE: Final = """
INSERT INTO daruma_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (thread_id, checkpoint_ns, channel, version)
DO UPDATE SET type = excluded.type, blob = excluded.blob
"""


class NotThinned(DarumaError):
    """Raised for a thread of another graph, whose channels nobody here can read."""


class Whole(NamedTuple):
    """The values that a checkpoint lacks to stand on its own."""

    config: RunnableConfig
    versions: Mapping[str, Any]
    values: Mapping[str, Any]

    async def put(self, saver: CheckpointSaver, connection: Connection, parent: str | None) -> None:
        """Write them into the checkpoint, which follows on ``parent`` from now on."""
        named = self.config["configurable"]
        thread, ns = named["thread_id"], named["checkpoint_ns"]
        for name, value in self.values.items():
            place = thread, ns, name, str(self.versions[name])
            row = blob_row(place, DeltaSnapshot(value), saver.serde, saver.sealing)
            await connection.execute(_PUT_WHOLE, row)
        at = thread, ns, named["checkpoint_id"]
        await renew(connection, at, parent, self.values.keys(), saver.sealing)


async def whole(saver: CheckpointSaver, thread_id: str, ns: str, checkpoint_id: str) -> Whole:
    """Read what a checkpoint lacks. Raises :class:`NotThinned`, and what reading it raises."""
    found = await saver.aget_tuple(config_of(thread_id, ns, checkpoint_id))
    if found is None:
        raise LookupError(f"checkpoint {checkpoint_id} of thread {thread_id!r} is gone")
    values = await channel_values(saver, found, _lacking(found))
    return Whole(found.config, found.checkpoint["channel_versions"], values)


async def channel_values(
    saver: CheckpointSaver, found: CheckpointTuple, channels: list[str]
) -> dict[str, Any]:
    """Return what delta channels hold at a checkpoint, read from its history."""
    from daruma.state.channels import DELTA

    history = await saver.aget_delta_channel_history(config=found.config, channels=channels)
    return {
        name: DELTA[name].replayed(
            history[name].get("seed"), (value for _, _, value in history[name]["writes"])
        )
        for name in channels
    }


def _lacking(found: CheckpointTuple) -> list[str]:
    from daruma.state.channels import DELTA

    counted: Mapping[str, Any] = found.metadata.get(_COUNTERS) or {}
    checkpoint = found.checkpoint
    lacking = [
        name
        for name in sorted({*DELTA, *counted})
        if name in checkpoint["channel_versions"] and name not in checkpoint["channel_values"]
    ]
    if unknown := [name for name in lacking if name not in DELTA]:
        raise NotThinned(
            f"thread {found.config['configurable']['thread_id']!r} keeps {unknown[0]!r} as Daruma "
            "does not: only the graph that wrote it can thin it; `delete` works"
        )
    return lacking


# --- Thinning a thread: its newest checkpoint stays just as it is, and what led to it goes (DU-08).

_HEADS: Final = """
SELECT DISTINCT ON (checkpoint_ns) checkpoint_ns AS ns, checkpoint_id AS id,
    metadata -> 'parents' ->> '' AS root, EXISTS (
        SELECT FROM daruma_checkpoints AS root WHERE root.thread_id = head.thread_id
        AND root.checkpoint_ns = '' AND root.checkpoint_id = head.metadata -> 'parents' ->> ''
    ) AS root_saved
FROM daruma_checkpoints AS head WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id DESC
"""
_THIN: Final = """
DELETE FROM {}
WHERE thread_id = %(thread)s AND (checkpoint_ns, checkpoint_id) NOT IN (
    SELECT * FROM unnest(%(ns)s::text[], %(ids)s::text[])
)
"""
_UNUSED_BLOBS: Final = """
DELETE FROM daruma_blobs
WHERE thread_id = %(thread)s AND (checkpoint_ns, channel, version) NOT IN (
    SELECT checkpoint_ns, used.key, used.value
    FROM daruma_checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS used
    WHERE thread_id = %(thread)s
)
"""


async def thin(saver: CheckpointSaver, thread_id: str) -> None:
    """Delete what came before the newest checkpoint of a thread that the saver holds.

    Pending writes stay with that checkpoint: open questions can be answered as before. Team members
    that are at work keep their newest one too. Crash-safe and idempotent.
    """

    async def heads(connection: Connection) -> Sequence[Mapping[str, Any]]:
        return await (await connection.execute(_HEADS, [thread_id])).fetchall()

    found = await saver.transact(heads)
    newest = next((each["id"] for each in found if not each["ns"]), None)
    staying = [
        await whole(saver, thread_id, each["ns"], each["id"])
        for each in found
        # The namespaces of the thread itself, and of calls that its newest checkpoint has made.
        if ":" not in each["ns"] or not each["root_saved"] or each["root"] == newest
    ]

    async def thinned(connection: Connection) -> None:
        for each in staying:
            await each.put(saver, connection, None)
        kept = [each.config["configurable"] for each in staying]
        ids = [each["checkpoint_id"] for each in kept]
        await connection.execute(_PASSED, [thread_id, ids])
        named = {"thread": thread_id, "ns": [each["checkpoint_ns"] for each in kept], "ids": ids}
        for table in ("daruma_writes", "daruma_checkpoints"):
            await connection.execute(sql.SQL(_THIN).format(sql.Identifier(table)), named)
        await connection.execute(_UNUSED_BLOBS, named)

    await saver.transact(thinned)


# --- Taking runs back: their checkpoints go, and the thread stands where it stood before them.
#
# LangGraph's server does so to a run that is replaced by another one ("rollback").

THREADS_OF: Final = """
SELECT DISTINCT thread_id FROM daruma_checkpoints WHERE metadata ->> 'run_id' = ANY(%s)
ORDER BY thread_id
"""
_CHAIN: Final = """
SELECT checkpoint_ns AS ns, checkpoint_id AS id, parent_checkpoint_id AS parent,
    coalesce(metadata ->> 'run_id' = ANY(%s), false) AS gone
FROM daruma_checkpoints WHERE thread_id = %s
"""
_UNWRITTEN: Final = """
DELETE FROM daruma_writes AS own
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(id)s
AND (task_id = '00000000-0000-0000-0000-000000000000'
OR (NOT %(asking)s = ANY(channels) AND EXISTS (
    SELECT FROM daruma_writes asked
    WHERE asked.thread_id = own.thread_id AND asked.checkpoint_ns = own.checkpoint_ns
    AND asked.checkpoint_id = own.checkpoint_id AND asked.task_id = own.task_id
    AND %(asking)s = ANY(asked.channels)
)))
"""
_GOING: Final = """
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = ANY(%(gone)s)
"""
_WRITES: Final = f"DELETE FROM daruma_writes {_GOING}"  # noqa: S608 - of constants alone
_CHECKPOINTS: Final = f"DELETE FROM daruma_checkpoints {_GOING}"  # noqa: S608
_EFFECTS: Final = f"DELETE FROM daruma_effects {_GOING} AND outcome IS NOT NULL"  # noqa: S608
"""Else a later call of the same name and words would be answered with these; doubts stay."""

_REPLIES: Final = """
DELETE FROM daruma_replies WHERE thread_id = %(thread)s AND interrupt_id = ANY(%(asked)s)
"""


@dataclass(frozen=True)
class _Row:
    ns: str
    id: str
    parent: str | None
    gone: bool


class _Chain:
    """The checkpoints of one namespace, and which of them go."""

    def __init__(self, rows: Collection[_Row]) -> None:
        self.rows = {row.id: row for row in rows}
        self.gone = [row.id for row in rows if row.gone]

    def orphans(self) -> list[_Row]:
        """Return those that stay though the one before them goes."""
        return [row for row in self.rows.values() if not row.gone and self._goes(row.parent)]

    def ends(self) -> list[str]:
        """Return those that become the end of the thread again: all that followed them goes."""
        kept = {row.parent for row in self.rows.values() if not row.gone}
        left = {row.parent for row in self.rows.values() if row.gone}
        return [id_ for id_ in left - kept if id_ in self.rows and not self._goes(id_)]

    def before(self, row: _Row) -> str | None:
        """Return the nearest one before it that stays."""
        parent = row.parent
        while self._goes(parent):
            parent = self.rows[str(parent)].parent
        return parent

    def _goes(self, id_: str | None) -> bool:
        return id_ in self.rows and self.rows[str(id_)].gone


async def remove_runs(saver: CheckpointSaver, thread_id: str, run_ids: Sequence[str]) -> None:
    """Delete what runs have written on a thread that the saver holds; made again, it does nothing.

    What they did outside of the database stays done, and a question that is open again can be
    answered again. A checkpoint of a later run stays as it is.
    """

    async def look(connection: Connection) -> list[dict[str, Any]]:
        found = await connection.execute(_CHAIN, [list(run_ids), thread_id])
        return await found.fetchall()

    rows = [_Row(**row) for row in await saver.transact(look)]
    for ns in sorted({row.ns for row in rows if row.gone}):
        await _remove(saver, thread_id, ns, _Chain([row for row in rows if row.ns == ns]))


async def _remove(saver: CheckpointSaver, thread_id: str, ns: str, chain: _Chain) -> None:
    staying = [await whole(saver, thread_id, ns, row.id) for row in chain.orphans()]
    asked = await asked_at(saver, thread_id, ns, [*chain.gone, *chain.ends()])
    named = {"thread": thread_id, "ns": ns, "gone": chain.gone}

    async def remove(connection: Connection) -> None:
        for each, row in zip(staying, chain.orphans(), strict=True):
            await each.put(saver, connection, chain.before(row))
        await connection.execute(_REPLIES, {**named, "asked": list(asked)})
        for id_ in chain.ends():
            await connection.execute(_UNWRITTEN, {**named, "id": id_, "asking": INTERRUPT})
        for statement in (_WRITES, _EFFECTS, _CHECKPOINTS, _UNUSED_BLOBS):
            await connection.execute(statement, named)

    await saver.transact(remove)


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
