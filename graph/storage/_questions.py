"""The questions of all threads that wait for a person: an inbox, and telling of each once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from langgraph.types import Interrupt
from psycopg.rows import DictRow

from daruma.graph.storage._checkpoints import CheckpointSaver
from daruma.graph.storage._pool import Connection
from daruma.graph.storage._rows import open_writes
from daruma.state.errors import DamagedState
from daruma.state.interrupts import reply_form, summary_of

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
        AND asked_at <= now() - make_interval(secs => %(older_than)s)
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


async def open_questions(
    saver: CheckpointSaver, *, kind: str | None = None, older_than: float = 0.0
) -> list[OpenQuestion]:
    """Return what waits, the longest first; one that is damaged does not hide the others."""

    async def read(connection: Connection) -> list[DictRow]:
        values = {"kind": kind, "older_than": older_than}
        return await (await connection.execute(_OPEN, values)).fetchall()

    return [_question_in(saver, row) for row in await saver.database.transact(read)]


async def claim_questions(saver: CheckpointSaver, thread: str | None) -> list[OpenQuestion]:
    """Return the open questions of a thread, or of all, that nobody else tells of from now on."""

    async def claim(connection: Connection) -> set[tuple[str, str]]:
        rows = await (await connection.execute(_CLAIM, {"thread": thread})).fetchall()
        return {(row["thread_id"], row["interrupt_id"]) for row in rows}

    claimed = await saver.database.transact(claim)
    found = await open_questions(saver) if claimed else []
    return [each for each in found if (each.thread_id, each.interrupt_id) in claimed]


async def settle_question(saver: CheckpointSaver, asked: OpenQuestion) -> None:
    """Have nobody tell of a question any more."""

    async def settle(connection: Connection) -> None:
        await connection.execute(_SETTLE, [asked.thread_id, asked.interrupt_id, asked.since])

    await saver.database.transact(settle)


def _question_in(saver: CheckpointSaver, row: DictRow) -> OpenQuestion:
    known = {name: row[name] for name in ("thread_id", "interrupt_id", "kind")}
    known["since"] = row["asked_at"].astimezone()
    try:
        asked = _interrupts_in(saver, row)
        value = next(each.value for each in asked if each.id == row["interrupt_id"])
    except (DamagedState, StopIteration, TypeError) as error:
        return OpenQuestion(**known, text=f"damaged: {error}")
    return OpenQuestion(**known, text=summary_of(value), reply=reply_form(value), value=value)


def _interrupts_in(saver: CheckpointSaver, row: DictRow) -> Sequence[Interrupt]:
    _, writes = open_writes(row["thread_id"], row, saver.sealing)
    values = (saver.serde.loads_typed((write.kind, write.payload)) for write in writes)
    found = [each for value in values for each in value]
    return [each for each in found if isinstance(each, Interrupt)]
