"""The journal of effects, large outputs, questions and accepted replies, in Postgres (DU-06)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import Rollback
from psycopg.rows import DictRow

from daruma.graph.storage._checkpoints import CheckpointSaver
from daruma.graph.storage._database import Connection, Database
from daruma.graph.storage._ledgers import Place, decides, key_of
from daruma.graph.storage._rows import open_writes
from daruma.graph.storage._saving import FENCE, Statement
from daruma.graph.storage._sealing import Sealing
from daruma.state.errors import DamagedState
from daruma.state.text import storable_text
from daruma.tools.calls import Effect, JournalEntry, Outcome

# --- The journal of effects in Postgres: what a call was about to do, and what came of it (DU-06).

_BEGIN: Final = f"""
WITH {FENCE}, passed AS (
    DELETE FROM daruma_effects AS passed
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
    AND outcome IS NOT NULL AND checkpoint_id <> %(checkpoint_id)s AND checkpoint_id < (
        SELECT max(checkpoint_id) FROM daruma_checkpoints
        WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
    )
    AND EXISTS (
        SELECT FROM daruma_checkpoints AS kept
        WHERE kept.thread_id = passed.thread_id AND kept.checkpoint_ns = passed.checkpoint_ns
        AND kept.checkpoint_id = passed.checkpoint_id
    )
), adopted AS (
    UPDATE daruma_effects AS lost
    SET checkpoint_ns = %(checkpoint_ns)s, checkpoint_id = %(checkpoint_id)s
    WHERE thread_id = %(thread_id)s AND call = %(call)s AND digest = %(digest)s AND run <> %(run)s
    AND NOT EXISTS (
        SELECT FROM daruma_checkpoints AS kept
        WHERE kept.thread_id = lost.thread_id AND kept.checkpoint_ns = lost.checkpoint_ns
        AND kept.checkpoint_id = lost.checkpoint_id
    )
    AND began_at = (
        SELECT max(began_at) FROM daruma_effects AS any_of_it
        WHERE any_of_it.thread_id = lost.thread_id AND any_of_it.call = lost.call
        AND any_of_it.digest = lost.digest
    )
    RETURNING lost.*
), begun AS (
    INSERT INTO daruma_effects
        (thread_id, checkpoint_ns, checkpoint_id, call, digest, run, key, settles, workspace)
    SELECT %(thread_id)s, %(checkpoint_ns)s, %(checkpoint_id)s, %(call)s, %(digest)s, %(run)s,
        %(key)s, %(settles)s, %(workspace)s
    FROM fence WHERE NOT EXISTS (SELECT FROM adopted)
    ON CONFLICT (thread_id, call, digest, checkpoint_ns, checkpoint_id)
    DO UPDATE SET call = excluded.call
    RETURNING *
)
SELECT effect.* FROM fence, (SELECT * FROM adopted UNION ALL SELECT * FROM begun) AS effect
"""  # noqa: S608 - of constants alone
"""``passed`` is what the thread has left behind: it can only be come to again by a fork, which has
its own. A call whose checkpoint was never stored, as under ``durability="async"``, is this one.
"""

_OF_IT: Final = """
thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
AND checkpoint_id = %(checkpoint_id)s AND call = %(call)s AND digest = %(digest)s
"""


def _fenced(change: str, more: str = "") -> str:
    """Make a change of one effect assert the fence, whatever there is to change."""
    changed = f"{change} WHERE {_OF_IT} {more}"
    return f"WITH {FENCE}, changed AS ({changed}) SELECT true AS done FROM fence"  # noqa: S608


_AGAIN: Final = _fenced("UPDATE daruma_effects SET attempt = %(attempt)s, run = %(run)s")
_END: Final = _fenced(
    "UPDATE daruma_effects SET kind = %(kind)s, outcome = %(outcome)s, ended_at = now()"
)
_FORGET: Final = _fenced("DELETE FROM daruma_effects", "AND outcome IS NULL")
_CUT_SHORT: Final = f"""
WITH {FENCE}
SELECT effect.* FROM fence, daruma_effects AS effect
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
AND checkpoint_id = %(checkpoint_id)s AND workspace = %(workspace)s
AND outcome IS NULL AND run <> %(run)s
ORDER BY began_at DESC
"""  # noqa: S608 - of constants alone


@dataclass(frozen=True)
class PostgresJournal:
    """The journal at one place of a thread; ``statement`` says who may write there."""

    statement: Statement
    serde: SerializerProtocol
    sealing: Sealing
    place: Place
    run: str

    async def begin(self, effect: Effect) -> JournalEntry:
        values = self._values(effect) | {
            "key": key_of(self.place, effect),
            "settles": effect.settles,
            "workspace": self._marked(effect.workspace),
        }
        (row,) = await self.statement(_BEGIN, values)
        return self._entry(row, effect.workspace)

    async def again(self, entry: JournalEntry) -> JournalEntry:
        attempt = entry.attempt + 1
        await self.statement(_AGAIN, self._values(entry.effect) | {"attempt": attempt})
        return replace(entry, attempt=attempt, cut_short=False)

    async def end(self, entry: JournalEntry, outcome: Outcome) -> None:
        said = self.serde.dumps_typed(list(astuple(outcome)))
        kind, packed = self.sealing.seal(said, self._sealed_at(entry.key))
        values = self._values(entry.effect) | {"kind": kind, "outcome": packed}
        await self.statement(_END, values)

    async def forget(self, entry: JournalEntry) -> None:
        await self.statement(_FORGET, self._values(entry.effect))

    async def cut_short(self, workspace: str) -> Sequence[JournalEntry]:
        values = self.place._asdict() | {"workspace": self._marked(workspace), "run": self.run}
        return [self._entry(row, workspace) for row in await self.statement(_CUT_SHORT, values)]

    def _values(self, effect: Effect) -> dict[str, Any]:
        own = {"call": effect.call, "digest": effect.digest, "run": self.run}
        return self.place._asdict() | own

    def _marked(self, workspace: str) -> str:
        """Return what a workspace is known by: its path stays out of the database.

        It is not bound to the thread, so that a copy of one is in the same workspace.
        """
        return workspace and self.sealing.mark(workspace, ("", "workspace"))

    def _entry(self, row: DictRow, workspace: str) -> JournalEntry:
        effect = Effect(row["call"], row["digest"], row["settles"], workspace)
        outcome = None
        if row["outcome"] is not None:
            value = (row["kind"], row["outcome"])
            opened = self.sealing.open(value, self._sealed_at(row["key"]))
            found = Outcome(*self.serde.loads_typed(opened))
            outcome = replace(found, images=tuple(found.images))  # stored as a list
        return JournalEntry(
            effect,
            key=row["key"],
            attempt=row["attempt"],
            cut_short=outcome is None and row["run"] != self.run,
            outcome=outcome,
        )

    def _sealed_at(self, key: str) -> tuple[str, ...]:
        return self.place.thread_id, "effect", key


# --- Large outputs in Postgres: one row each, by thread and digest.

_KEEP: Final = f"""
WITH {FENCE}
INSERT INTO daruma_outputs (thread_id, id, kind, output)
SELECT %(thread)s, %(id)s, %(kind)s, %(output)s FROM fence
ON CONFLICT (thread_id, id) DO NOTHING
"""  # noqa: S608 - of constants alone
_READ: Final = """
SELECT kind, output FROM daruma_outputs WHERE thread_id = %(thread)s AND id = %(id)s
"""


@dataclass(frozen=True)
class PostgresOutputs:
    """The outputs beside a saver's checkpoints; ``statement`` says who may write there."""

    statement: Statement
    sealing: Sealing

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        kind, output = self.sealing.seal(("text", text.encode()), (thread_id, "output", id_))
        values = {"thread": thread_id, "id": id_, "kind": kind, "output": output}
        await self.statement(_KEEP, values)

    async def read(self, thread_id: str, id_: str) -> str | None:
        """Return an output. Raises :class:`~daruma.state.errors.DamagedState`."""
        found = await self.statement(_READ, {"thread": thread_id, "id": id_})
        if not found:
            return None
        row = found[0]
        try:
            place = thread_id, "output", id_
            return self.sealing.open((row["kind"], row["output"]), place)[1].decode()
        except DamagedState as error:
            raise DamagedState(f"the output {id_} of thread {thread_id!r}: {error}") from error


# --- Accepted replies in Postgres: one row each, and only the first one gets in.

_ACCEPT: Final = """
INSERT INTO daruma_replies (thread_id, interrupt_id, kind, reply, acceptance)
VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (thread_id, interrupt_id) DO UPDATE SET acceptance = excluded.acceptance
WHERE daruma_replies.acceptance = excluded.acceptance
"""
_ANSWERED: Final = """
DELETE FROM daruma_questions WHERE thread_id = %s AND interrupt_id = ANY(%s)
"""
_FIND: Final = """
SELECT interrupt_id, kind, reply FROM daruma_replies
WHERE thread_id = %s AND interrupt_id = ANY(%s)
"""
_ALL: Final = "SELECT interrupt_id, kind, reply FROM daruma_replies WHERE thread_id = %s"


@dataclass(frozen=True)
class PostgresReplies:
    """The replies beside a saver's checkpoints; see ``graph/storage/_ledgers.py``."""

    database: Database
    serde: SerializerProtocol
    sealing: Sealing

    async def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        # In one order, so that two who answer the same questions can not wait for each other.
        # Which acceptance it was is kept: one whose acknowledgement was lost is made again.
        own = uuid4().hex
        rows = []
        for id_ in sorted(replies):
            reply = self.serde.dumps_typed(replies[id_])
            sealed = self.sealing.seal(reply, (thread_id, "reply", id_))
            rows.append([thread_id, id_, *sealed, own])

        async def accept(connection: Connection) -> bool:
            async with connection.transaction() as together:
                for row in rows:
                    done = await connection.execute(_ACCEPT, row)
                    if not done.rowcount:
                        raise Rollback(together)
                await connection.execute(_ANSWERED, [thread_id, [*replies]])
                return True
            return False

        return await self.database.transact(accept)

    async def find(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        rows = await self.database.statement(_FIND, [thread_id, list(ids)])
        return {row["interrupt_id"]: self._opened(thread_id, row) for row in rows}

    async def has_decisions(self, thread_id: str) -> bool:
        rows = await self.database.statement(_ALL, [thread_id])
        return any(decides(self._opened(thread_id, row)) for row in rows)

    def _opened(self, thread_id: str, row: DictRow) -> Any:
        """Read a reply. Raises :class:`~daruma.state.errors.DamagedState`."""
        id_ = row["interrupt_id"]
        try:
            value = self.sealing.open((row["kind"], row["reply"]), (thread_id, "reply", id_))
            return self.serde.loads_typed(value)
        except DamagedState as error:
            raise DamagedState(f"the reply to {id_} on thread {thread_id!r}: {error}") from error


# --- The questions of all threads that wait for a person: an inbox, and telling of each once.

_FOUND: Final = """
FROM daruma_questions AS asked WHERE NOT EXISTS (
    SELECT FROM daruma_checkpoints AS newer
    WHERE newer.thread_id = asked.thread_id AND newer.checkpoint_ns = ''
        AND newer.checkpoint_id > asked.checkpoint_id
)
"""
_OPEN: Final = f"""
SELECT * FROM (
    SELECT * {_FOUND} AND (%(kind)s::text IS NULL OR kind = %(kind)s)
        AND extract(epoch FROM now() - asked_at) >= %(older_than)s::float8
) AS asked JOIN daruma_writes USING (thread_id, checkpoint_id, task_id)
WHERE checkpoint_ns = '' AND '__interrupt__' = ANY(channels)
ORDER BY asked_at, thread_id, interrupt_id
"""  # noqa: S608 - of constants alone
REVIEWED: Final = f"SELECT DISTINCT thread_id {_FOUND} AND kind = 'plan' ORDER BY thread_id"
"""The threads whose plan waits."""

_CLAIM: Final = f"""
UPDATE daruma_questions AS claimed SET notified_at = now()
FROM (SELECT thread_id, interrupt_id {_FOUND} AND NOT notified
    AND (notified_at IS NULL OR notified_at < now() - interval '2 min')
    AND (%(thread)s::text IS NULL OR thread_id = %(thread)s)
    ORDER BY asked_at LIMIT 20 FOR UPDATE SKIP LOCKED
) AS found
WHERE claimed.thread_id = found.thread_id AND claimed.interrupt_id = found.interrupt_id
RETURNING claimed.thread_id, claimed.interrupt_id
"""  # noqa: S608 - of constants alone
_SETTLE: Final = """
UPDATE daruma_questions SET notified = true
WHERE thread_id = %s AND interrupt_id = %s AND asked_at = %s
"""


@dataclass(frozen=True, kw_only=True)
class OpenQuestion:
    """A question that waits: ``interrupt_id`` is what its reply goes by, ``reply`` what fits.

    ``since`` is when it was asked, ``text`` the question in one line, ``value`` all of it; None for
    one that is damaged.
    """

    thread_id: str
    interrupt_id: str
    kind: str
    since: datetime
    text: str
    reply: str = ""
    value: Any = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return asdict(self) | {"since": self.since.isoformat()}


async def read_inbox(
    saver: CheckpointSaver, *, kind: str | None = None, older_than: float = 0.0
) -> list[OpenQuestion]:
    """Return what waits, the longest first; one that is damaged does not hide the others."""

    async def read(connection: Connection) -> list[DictRow]:
        asked = None if kind is None else storable_text(str(kind))
        values = {"kind": asked, "older_than": older_than}
        return await (await connection.execute(_OPEN, values)).fetchall()

    saver = saver.looking()
    return [_question_in(saver, row) for row in await saver.database.transact(read)]


async def claim_questions(saver: CheckpointSaver, thread: str | None) -> list[OpenQuestion]:
    """Return the open questions of a thread, or of all, that nobody else tells of from now on."""
    rows = await saver.database.statement(_CLAIM, {"thread": thread})
    claimed = {(row["thread_id"], row["interrupt_id"]) for row in rows}
    found = await read_inbox(saver) if claimed else []
    return [each for each in found if (each.thread_id, each.interrupt_id) in claimed]


async def settle_question(saver: CheckpointSaver, asked: OpenQuestion) -> None:
    """Have nobody tell of a question any more."""
    values = [asked.thread_id, asked.interrupt_id, asked.since]
    await saver.database.statement(_SETTLE, values)


def _question_in(saver: CheckpointSaver, row: DictRow) -> OpenQuestion:
    from daruma.state.interrupts import reply_form, summary_of  # not read to list threads (FA-13)
    from daruma.tools.text import mask_keys

    known = {name: row[name] for name in ("thread_id", "interrupt_id", "kind")}
    known["since"] = row["asked_at"].astimezone()
    try:
        _, writes = open_writes(row["thread_id"], row, saver.sealing)
        values = (saver.serde.loads_typed((write.kind, write.payload)) for write in writes)
        asked = [each for value in values for each in value if hasattr(each, "value")]
        value = mask_keys(next(e.value for e in asked if e.id == row["interrupt_id"]))
    except (DamagedState, StopIteration, TypeError) as error:
        return OpenQuestion(**known, text=f"damaged: {error}")
    return OpenQuestion(**known, text=summary_of(value), reply=reply_form(value), value=value)
