"""Checkpoints that are taken away, and what stays made whole (DU-08)."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from psycopg import sql
from psycopg.types.json import Jsonb

from daruma.graph.storage._checkpoints import CheckpointSaver
from daruma.graph.storage._pool import Connection
from daruma.graph.storage._rows import blob_row, checked, config_of, damage_at, marked
from daruma.graph.storage._sealing import Sealing
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
