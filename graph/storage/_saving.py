"""What a run stores: checkpoints and writes, in one statement, under its fence (DU-03)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final, NamedTuple

import orjson
import ormsgpack
from langgraph.checkpoint.serde.types import TASKS
from psycopg import DatabaseError
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from daruma.graph.storage._ledgers import Hold
from daruma.graph.storage._manifest import NAME
from daruma.state.errors import DamagedState, HoldLost

# --- JSON for rows, by a writer several times as fast as Python's own.
#
# It is as strict about types, but for UUIDs and enumerations, of which it writes the values.

_AS_STRICT: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
) | orjson.OPT_PASSTHROUGH_SUBCLASS


def json_text(value: Any) -> bytes:
    """Return a value as JSON; Python's own writes what only that can, such as huge numbers.

    A float that is not finite becomes null: Postgres has no such number.
    """
    try:
        return orjson.dumps(value, option=_AS_STRICT)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def jsonb(value: Any) -> Jsonb:
    """Return a value as a parameter of a statement."""
    return Jsonb(value, json_text)


# --- Who may write on a thread: asserted within the transaction of each write (DU-03).
#
# The row of the lease is locked for reading until the write is committed, so that nobody can take
# the thread over in between.

ASSERT: Final = "SELECT daruma_fence(%s, %s)"
FENCE: Final = """
fence AS MATERIALIZED (
    SELECT CASE WHEN %(token)s::bigint IS NOT NULL THEN daruma_fence(%(holding)s, %(token)s) END
)
"""
"""The same as a part of one statement, which has to read from it: else it is left out."""

Statement = Callable[[str, Mapping[str, Any]], Awaitable[list[DictRow]]]
"""Carries out one statement, a transaction by itself, with what FENCE takes; returns its rows."""

_LOST: Final = "DR001"


def fence_of(hold: Hold | None) -> dict[str, Any]:
    """Return what FENCE takes; without a hold, it lets everything pass."""
    return {
        "holding": hold.thread_id if hold else None,
        "token": hold.token if hold else None,
    }


@contextmanager
def lost_by(hold: Hold | None) -> Iterator[None]:
    """Say in our words that the fence did not let a write pass.

    Raises :class:`~daruma.state.errors.HoldLost`.
    """
    try:
        yield
    except DatabaseError as error:
        if hold and error.sqlstate == _LOST:
            raise HoldLost(hold.thread_id) from None
        raise


# --- What a run stores: a checkpoint with what its parent's tasks wrote, in one statement.
#
# One statement is one transaction and one journey to the server. The parts of a statement do not
# see what the others of it do: so a checkpoint counts what is there and what is put there with it.

WriteRow = tuple[Any, ...]
"""Thread, namespace, checkpoint, task, path, number, channel, kind and value of a write."""

BlobRow = tuple[Any, ...]
"""Thread, namespace, channel, version, kind and value of a channel."""


_INSERT_WRITES: Final = """
INSERT INTO checkpoint_writes (
    thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
)
SELECT row ->> 0, row ->> 1, row ->> 2, row ->> 3, row ->> 4, (row ->> 5)::int, row ->> 6,
    row ->> 7, substr(%(written_bytes)b, (row ->> 8)::int, (row ->> 9)::int)
FROM fence, jsonb_array_elements(%(written)s) AS row
"""
_ON_THE_SAME_WRITE: Final = "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO"
_INSERT_BLOBS: Final = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT row ->> 0, row ->> 1, row ->> 2, row ->> 3, row ->> 4,
    substr(%(valued_bytes)b, (row ->> 5)::int, (row ->> 6)::int)
FROM fence, jsonb_array_elements(%(valued)s) AS row
"""


def _saving(write: str = "", value: str = "", checkpoint: str = "") -> str:
    """Return LangGraph's three statements as one, with what each does where the row is there."""
    return f"""
WITH {FENCE}, written AS (
    {_INSERT_WRITES} {write} RETURNING checkpoint_ns, checkpoint_id, channel
), valued AS ({_INSERT_BLOBS} {value}), counted AS (
    SELECT channel, count(*) AS n FROM (
        SELECT channel FROM checkpoint_writes
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(parent)s
        UNION ALL
        SELECT channel FROM written
        WHERE checkpoint_ns = %(ns)s AND checkpoint_id = %(parent)s
    ) AS there
    WHERE %(checkpoint)s #> '{{{NAME},writes}}' ? channel GROUP BY channel
)
INSERT INTO checkpoints (
    thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata
)
SELECT %(thread)s::text, %(ns)s::text, %(id)s::text, %(parent)s::text, jsonb_set(
    %(checkpoint)s, '{{{NAME},writes}}',
    coalesce((SELECT jsonb_object_agg(channel, n) FROM counted), '{{}}')
), %(metadata)s
FROM fence
{checkpoint}
"""  # noqa: S608 - of constants alone


SAVE: Final = _saving()
"""The checkpoint also counts its parent's writes. Fails where one of the rows is there already.

That is so after a lost answer, and seldom else: to be ready for it, Postgres would confirm each row
once more in its log.
"""

SAVE_AGAIN: Final = _saving(
    f"{_ON_THE_SAME_WRITE} NOTHING",
    "ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING",
    "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) "
    "DO UPDATE SET checkpoint = excluded.checkpoint, metadata = excluded.metadata",
)
"""The same where they may be there: what is there stays, but for the checkpoint's own row."""

WRITE: Final = f"""
WITH {FENCE} {_INSERT_WRITES} {_ON_THE_SAME_WRITE} NOTHING
"""
WRITE_OVER: Final = f"""
WITH {FENCE} {_INSERT_WRITES} {_ON_THE_SAME_WRITE}
UPDATE SET channel = excluded.channel, type = excluded.type, blob = excluded.blob
"""
"""For the special channels, each of which has one slot."""


class Saved(NamedTuple):
    """A checkpoint as it is stored."""

    thread: str
    ns: str
    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: Any
    blobs: Sequence[BlobRow]
    again: bool = False
    """Whether a value among them may have been stored with a checkpoint before."""

    def values(self, writes: Sequence[WriteRow]) -> dict[str, Any]:
        """Return what SAVE takes, but for the fence's."""
        return {
            "thread": self.thread,
            "ns": self.ns,
            "id": self.id,
            "parent": self.parent,
            "checkpoint": jsonb(self.checkpoint),
            "metadata": jsonb(self.metadata),
            **_rows("valued", self.blobs),
            **values_of(writes),
        }


def values_of(writes: Sequence[WriteRow]) -> dict[str, Any]:
    """Return what WRITE and WRITE_OVER take, but for the fence's."""
    return _rows("written", writes)


def _rows(name: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return rows as JSON, each with where its last column, bytes, stands among those of all.

    Arrays, one for each column, take psycopg as long as all the rest of saving.
    """
    ends = [*accumulate((len(row[-1]) for row in rows), initial=1)]
    told = [[*row[:-1], at, len(row[-1])] for row, at in zip(rows, ends, strict=False)]
    return {name: jsonb(told), f"{name}_bytes": b"".join(row[-1] for row in rows)}


# --- What a run's tasks have written and the database does not have yet.
#
# LangGraph saves what each task wrote, and then a checkpoint that follows from it. One transaction
# does for both where the one comes right after the other; where it does not, as while other tasks
# of the same superstep still run, what was written is stored by itself. Whoever dies in between
# does the task again, as one who died before its end.

APART: Final = 0.1
"""Seconds after which writes are stored by themselves; a checkpoint follows within a thousandth."""

_TURNS: Final = 20
"""How often the loop then still comes round: a checkpoint that it is only late with takes a dozen.

In a busy process the seconds say little: they may be over before what is ready has had its turn.
"""

STORING_APART: Final = "daruma-storing-apart"
"""The name of the tasks that do so."""


class PendingWrites:
    """The pending writes of one run; all of it on the loop of the database."""

    def __init__(
        self, store: Callable[[Sequence[WriteRow]], Awaitable[None]], apart: float = APART
    ) -> None:
        self._store = store
        self._apart = apart
        self._rows: list[WriteRow] = []
        self._storing: asyncio.Task[None] | None = None
        self._due: asyncio.Handle | None = None

    async def add(self, rows: Sequence[WriteRow]) -> None:
        """Take over what a task wrote. Raises what kept earlier writes from being stored."""
        self._refuse_after_a_loss()
        self._rows += rows
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(self._apart, self._come_round, _TURNS)

    async def stored_with(self, store: Callable[[list[WriteRow]], Awaitable[None]]) -> None:
        """Store them with something that may only be there once they are.

        Raises what kept them, or earlier ones, from being stored.
        """
        await self._stored_apart()
        rows = self._taken()
        try:
            await store(rows)
        except asyncio.CancelledError:
            self._rows[:0] = rows
            raise

    async def settled(self) -> None:
        """Have all of them stored. Raises what kept them from that."""
        await self._stored_apart()
        if self._rows:
            self._begin()
            await self._stored_apart()

    def _come_round(self, turns: int) -> None:
        """Begin after so many turns of the loop."""
        if turns:
            self._due = asyncio.get_running_loop().call_soon(self._come_round, turns - 1)
        else:
            self._begin()

    def _begin(self) -> None:
        """Store what is there, after what is being stored."""
        before, rows = self._storing, self._taken()
        self._storing = asyncio.create_task(self._store_after(before, rows), name=STORING_APART)
        self._storing.add_done_callback(_heard)

    async def _store_after(
        self, before: "asyncio.Task[None] | None", rows: Sequence[WriteRow]
    ) -> None:
        if before:
            await before
        await self._store(rows)

    async def _stored_apart(self) -> None:
        while self._storing and not self._storing.done():
            await asyncio.wait([self._storing])
        self._refuse_after_a_loss()

    def _refuse_after_a_loss(self) -> None:
        if self._storing and self._storing.done():
            self._storing.result()

    def _taken(self) -> list[WriteRow]:
        if self._due:
            self._due.cancel()
            self._due = None
        taken, self._rows = self._rows, []
        return taken


def _heard(ended: asyncio.Task[None]) -> None:
    """Take note of what went wrong: it is raised to the run, unless that was abandoned."""
    if not ended.cancelled():
        ended.exception()


# --- What a task wrote to channels that nothing is replayed from, in one row instead of one each.
#
# Those writes are read as they wait to be applied, all of a checkpoint's at once: Postgres has no
# use for a row, a key in the index and an entry in its log for each of them.

PACKED_CHANNEL: Final = "__packed__"
"""What stands in the row in place of a channel."""

_OF_A_RUN: Final = "~__pregel_"
"""Begins the path of a task that a graph runs, which comes to its end once.

What is edited by hand takes such a task's place, also of one that has written already.
"""

_KIND: Final = "packed"
_SLOT: Final = -100
"""In place of a write's number; LangGraph's own slots below 0 are few."""


class Write(NamedTuple):
    """One of the writes in a row: its number among those of its task, and what is written where."""

    number: int
    channel: str
    kind: str
    payload: bytes


def together(rows: Sequence[WriteRow], passing: Collection[str]) -> Sequence[WriteRow]:
    """Return a task's rows, those for ``passing`` channels and for what follows as one.

    Delta channels must not be among them: those are replayed from rows that are found by name.
    """
    of_a_run = [row for row in rows if row[5] >= 0 and row[4].startswith(_OF_A_RUN)]
    packed = [row for row in of_a_run if _passes(row[6], passing)]
    if len(packed) < 2:
        return rows
    numbers = {row[5] for row in packed}
    payload = ormsgpack.packb([row[5:] for row in packed])
    one = (*packed[0][:5], _SLOT, PACKED_CHANNEL, _KIND, payload)
    return [*(row for row in rows if row[5] not in numbers), one]


def writes_in(row: WriteRow) -> Iterable[Write]:
    """Return the writes of a row whose value is opened: mostly one."""
    if row[6] != PACKED_CHANNEL:
        return [Write(*row[5:])]
    return _unpacked(row[7], row[8])


def _passes(channel: str, passing: Collection[str]) -> bool:
    return channel in passing or channel == TASKS or channel.startswith("branch:")


def _unpacked(kind: str, payload: bytes) -> list[Write]:
    """Raise :class:`~daruma.state.errors.DamagedState` for what ``together`` did not make."""
    try:
        found = ormsgpack.unpackb(payload) if kind == _KIND else None
    except ormsgpack.MsgpackDecodeError:
        found = None
    if not isinstance(found, list) or not all(map(_is_write, found)):
        raise DamagedState("the writes of a task are not what was stored")
    return [Write(*each) for each in found]


def _is_write(found: Any) -> bool:
    forms = (int, str, str, bytes)
    return (
        isinstance(found, list)
        and len(found) == len(forms)
        and all(type(part) is form for part, form in zip(found, forms, strict=True))
    )
