"""Taking runs back: their checkpoints go, and the thread stands where it stood before them.

LangGraph's server does so to a run that is replaced by another one ("rollback").
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langgraph.checkpoint.serde.types import INTERRUPT

from daruma.graph.storage.belonging import asked_at
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.wholeness import Whole, whole

if TYPE_CHECKING:
    from daruma.graph.storage.saver import PostgresSaver

THREADS_OF: Final = """
SELECT DISTINCT thread_id FROM checkpoints WHERE metadata ->> 'run_id' = ANY(%s) ORDER BY thread_id
"""
_CHAIN: Final = """
SELECT checkpoint_ns AS ns, checkpoint_id AS id, parent_checkpoint_id AS parent,
    coalesce(metadata ->> 'run_id' = ANY(%s), false) AS gone
FROM checkpoints WHERE thread_id = %s
"""
_UNWRITTEN: Final = """
DELETE FROM checkpoint_writes AS own
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(id)s
AND (task_id = '00000000-0000-0000-0000-000000000000' OR (channel <> %(asking)s AND EXISTS (
    SELECT FROM checkpoint_writes asked
    WHERE asked.thread_id = own.thread_id AND asked.checkpoint_ns = own.checkpoint_ns
    AND asked.checkpoint_id = own.checkpoint_id AND asked.task_id = own.task_id
    AND asked.channel = %(asking)s
)))
"""
_WRITES: Final = """
DELETE FROM checkpoint_writes
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = ANY(%(gone)s)
"""
_CHECKPOINTS: Final = """
DELETE FROM checkpoints
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = ANY(%(gone)s)
"""
_EFFECTS: Final = """
DELETE FROM daruma_effects
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = ANY(%(gone)s)
AND outcome IS NOT NULL
"""
"""Else a later call of the same name and words would be answered with these; doubts stay."""

_BLOBS: Final = """
DELETE FROM checkpoint_blobs
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND (channel, version) NOT IN (
    SELECT used.key, used.value
    FROM checkpoints, jsonb_each_text(checkpoint -> 'channel_versions') AS used
    WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s
)
"""
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


async def remove_runs(saver: "PostgresSaver", thread_id: str, run_ids: Sequence[str]) -> None:
    """Delete what runs have written on a thread that the saver holds; made again, it does nothing.

    What they did outside of the database stays done, and a question that is open again can be
    answered again. A checkpoint of a later run stays as it is.
    """

    async def look(connection: Connection) -> list[dict[str, Any]]:
        found = await connection.execute(_CHAIN, [list(run_ids), thread_id])
        return await found.fetchall()

    rows = [_Row(**row) for row in await saver.transact(look)]
    for ns in sorted({row.ns for row in rows if row.gone}):
        chain = _Chain([row for row in rows if row.ns == ns])
        staying = [await whole(saver, thread_id, ns, row.id) for row in chain.orphans()]
        asked = await asked_at(saver, thread_id, ns, [*chain.gone, *chain.ends()])
        await saver.transact(_Removal(saver, thread_id, ns, chain, staying, asked))


@dataclass(frozen=True)
class _Removal:
    saver: "PostgresSaver"
    thread_id: str
    ns: str
    chain: _Chain
    staying: Sequence[Whole]
    asked: Collection[str]

    async def __call__(self, connection: Connection) -> None:
        for each, row in zip(self.staying, self.chain.orphans(), strict=True):
            await each.put(self.saver, connection, self.chain.before(row))
        named = {"thread": self.thread_id, "ns": self.ns, "gone": self.chain.gone}
        await connection.execute(_REPLIES, {**named, "asked": list(self.asked)})
        for id_ in self.chain.ends():
            await connection.execute(_UNWRITTEN, {**named, "id": id_, "asking": INTERRUPT})
        for statement in (_WRITES, _EFFECTS, _CHECKPOINTS, _BLOBS):
            await connection.execute(statement, named)
