"""What a run stores: checkpoints and writes, in one statement, under its fence (DU-03)."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import accumulate
from typing import Any, Final

from psycopg import DatabaseError
from psycopg.rows import DictRow

from daruma.graph.storage._database import Database
from daruma.graph.storage._ledgers import MOST_WAITING, Hold
from daruma.graph.storage._rows import NAME, WriteRow, jsonb
from daruma.graph.storage._sealing import Sealing
from daruma.state.errors import DamagedState, HoldLost
from daruma.state.steering import SteeringMessage, steering_id

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
    return {"holding": hold.thread_id if hold else None, "token": hold.token if hold else None}


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

_INSERT_WRITES: Final = """
INSERT INTO daruma_writes (
    thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, slot, channels, type, blob
)
SELECT row ->> 0, row ->> 1, row ->> 2, row ->> 3, row ->> 4, (row ->> 5)::int,
    ARRAY(SELECT jsonb_array_elements_text(row -> 6)), row ->> 7,
    substr(%(written_bytes)b, (row ->> 8)::int, (row ->> 9)::int)
FROM fence, jsonb_array_elements(%(written)s) AS row
"""
_SAME_WRITE: Final = "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, slot) DO"
_INSERT_BLOBS: Final = """
INSERT INTO daruma_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT row ->> 0, row ->> 1, row ->> 2, row ->> 3, row ->> 4,
    substr(%(valued_bytes)b, (row ->> 5)::int, (row ->> 6)::int)
FROM fence, jsonb_array_elements(%(valued)s) AS row
"""


def _saving(write: str = "", value: str = "", checkpoint: str = "", told: str = "") -> str:
    """Return the three statements as one, with what each does where the row is there.

    Its row says whether something waits that a person sent to the thread (FA-14), beside what
    ``told`` deletes of it.
    """
    return f"""
WITH {FENCE}, written AS (
    {_INSERT_WRITES} {write} RETURNING checkpoint_ns, checkpoint_id, channels
), valued AS ({_INSERT_BLOBS} {value}), {told} counted AS (
    SELECT channel, count(*) AS n FROM (
        SELECT unnest(channels) AS channel FROM daruma_writes
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(parent)s
        UNION ALL
        SELECT unnest(channels) FROM written
        WHERE checkpoint_ns = %(ns)s AND checkpoint_id = %(parent)s
    ) AS there
    WHERE %(checkpoint)s #> '{{{NAME},writes}}' ? channel GROUP BY channel
)
INSERT INTO daruma_checkpoints (
    thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata
)
SELECT %(thread)s::text, %(ns)s::text, %(id)s::text, %(parent)s::text, jsonb_set(
    %(checkpoint)s, '{{{NAME},writes}}',
    coalesce((SELECT jsonb_object_agg(channel, n) FROM counted), '{{}}')
), %(metadata)s
FROM fence
{checkpoint}
RETURNING EXISTS (
    SELECT FROM daruma_steering AS sent
    WHERE sent.thread_id = %(thread)s {"AND sent.id <> ALL (%(told)s::text[])" if told else ""}
) AS steered
"""  # noqa: S608 - of constants alone


SAVE: Final = _saving()
"""The checkpoint also counts its parent's writes. Fails where one of the rows is there already.

That is so after a lost answer, and seldom else: to be ready for it, Postgres would confirm each row
once more in its log.
"""

SAVE_AGAIN: Final = _saving(
    f"{_SAME_WRITE} NOTHING",
    "ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING",
    "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) "
    "DO UPDATE SET checkpoint = excluded.checkpoint, metadata = excluded.metadata",
    """told AS (
        DELETE FROM daruma_steering WHERE thread_id = %(thread)s AND id = ANY (%(told)s::text[])
    ),""",
)
"""The same where they may be there: what is there stays, but for the checkpoint's own row.

With it goes what people sent to the thread and the history holds from then on.
"""

WRITE: Final = f"""
WITH {FENCE} {_INSERT_WRITES} {_SAME_WRITE} NOTHING
"""
WRITE_OVER: Final = f"""
WITH {FENCE} {_INSERT_WRITES} {_SAME_WRITE}
UPDATE SET channels = excluded.channels, type = excluded.type, blob = excluded.blob
"""
"""For the special channels, each of which has one slot."""

ASK: Final = f"""
WITH {FENCE}, passed AS (
    DELETE FROM daruma_questions WHERE thread_id = %(thread)s::text
        AND checkpoint_id <> %(checkpoint)s AND NOT %(asked)s @> jsonb_build_array(
            jsonb_build_array(interrupt_id)
        )
), asked AS (
    INSERT INTO daruma_questions AS known (
        thread_id, checkpoint_id, task_id, interrupt_id, question_id, kind
    )
    SELECT %(thread)s::text, %(checkpoint)s::text, %(task)s::text, row ->> 0, row ->> 1, row ->> 2
    FROM fence, jsonb_array_elements(%(asked)s) AS row
    ON CONFLICT (thread_id, interrupt_id) DO UPDATE SET
        question_id = excluded.question_id, kind = excluded.kind, asked_at = now(),
        checkpoint_id = excluded.checkpoint_id, task_id = excluded.task_id,
        notified_at = NULL, notified = false
    WHERE known.question_id <> excluded.question_id
) {_INSERT_WRITES} {_SAME_WRITE}
UPDATE SET channels = excluded.channels, type = excluded.type, blob = excluded.blob
"""  # noqa: S608 - of constants alone
"""The same for questions, which wait from then on; one that is only asked again has its time."""


def row_values(name: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Return the values of a statement for rows that are ``written`` or ``valued``.

    They are JSON, each row with where its last column, bytes, stands among those of all.
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

        async def store() -> None:
            if before:
                await before
            await self._store(rows)

        self._storing = asyncio.create_task(store(), name=STORING_APART)
        # What went wrong is noted: it is raised to the run, unless that was abandoned.
        self._storing.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

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


# --- What people send to threads at work, until their histories hold it (FA-14): a row each, which
# goes with the write that puts it there.
#
# A run asks nothing of the database to know whether something waits: its lease tells that when it
# is taken, and each checkpoint when it is stored. So what is sent before the checkpoint that comes
# ahead of a request is in that request, whichever process sent it.

_SEND: Final = """
WITH one_by_one AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended('daruma.steering ' || %(thread)s, 0))
)
INSERT INTO daruma_steering (thread_id, id, kind, message)
SELECT %(thread)s::text, %(id)s, %(kind)s, %(message)s FROM one_by_one
WHERE (SELECT count(*) FROM daruma_steering WHERE thread_id = %(thread)s) < %(most)s
ON CONFLICT (thread_id, id) DO UPDATE SET id = excluded.id
RETURNING id
"""
_READ: Final = """
SELECT id, kind, message FROM daruma_steering WHERE thread_id = %(thread)s ORDER BY number
"""


class PostgresSteering:
    """What waits for threads in a database (FA-14); of a run's ``hold``, whether anything does."""

    def __init__(self, database: Database, sealing: Sealing, hold: Hold | None = None) -> None:
        self._database = database
        self._sealing = sealing
        self._waits = hold is not None and hold.steered
        self.told = set[str]()
        """Ids of what the history holds: their rows go with the next checkpoint."""

    def waits(self, thread_id: str) -> bool:  # noqa: ARG002 - a run has one thread
        return self._waits

    async def read(self, thread_id: str) -> Sequence[SteeringMessage]:
        self._waits = False
        rows = await self._database.statement(_READ, {"thread": thread_id})
        return [self._opened(thread_id, row) for row in rows]

    async def send(self, thread_id: str, message: SteeringMessage) -> bool:
        packed = json.dumps(asdict(message), ensure_ascii=False).encode()
        kind, sealed = self._sealing.seal(("json", packed), (thread_id, "steering", message.id))
        values = {"thread": thread_id, "id": message.id, "kind": kind, "message": sealed}
        return bool(await self._database.statement(_SEND, values | {"most": MOST_WAITING}))

    def forget(self, thread_id: str, ids: Collection[str]) -> None:  # noqa: ARG002
        self.told.update(ids)

    def stored(self, told: Collection[str], row: Mapping[str, Any]) -> None:
        """Take note that a checkpoint was stored: the rows of what was told are gone."""
        self.told.difference_update(told)
        self._waits = self._waits or row["steered"]

    def _opened(self, thread_id: str, row: DictRow) -> SteeringMessage:
        """Read a message. Raises :class:`~daruma.state.errors.DamagedState`."""
        id_ = row["id"]
        try:
            value = self._sealing.open((row["kind"], row["message"]), (thread_id, "steering", id_))
            return SteeringMessage(**json.loads(value[1]))
        except (DamagedState, TypeError, ValueError) as error:
            raise DamagedState(f"what was sent to thread {thread_id!r}: {error}") from error


def told_in(writes: Sequence[tuple[str, Any]]) -> set[str]:
    """Return the ids of what was sent to a thread and is among what a task writes."""
    written = (value for channel, value in writes if channel == "messages")
    found = (each for value in written if isinstance(value, list) for each in value)
    return {id_ for each in found if (id_ := steering_id(each))}
