"""The journal of effects in Postgres: what a call was about to do, and what came of it (DU-06)."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.rows import DictRow

from daruma.graph.journals import Place, key_of
from daruma.graph.storage.database import Work
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.sealing import Sealing
from daruma.tools.journal import Effect, Entry, Outcome

T = TypeVar("T")

_ADOPT: Final = """
UPDATE daruma_effects AS lost
SET checkpoint_ns = %(checkpoint_ns)s, checkpoint_id = %(checkpoint_id)s
WHERE thread_id = %(thread_id)s AND call = %(call)s AND digest = %(digest)s AND run <> %(run)s
AND NOT EXISTS (
    SELECT FROM checkpoints AS kept
    WHERE kept.thread_id = lost.thread_id AND kept.checkpoint_ns = lost.checkpoint_ns
    AND kept.checkpoint_id = lost.checkpoint_id
)
AND began_at = (
    SELECT max(began_at) FROM daruma_effects AS any_of_it
    WHERE any_of_it.thread_id = lost.thread_id AND any_of_it.call = lost.call
    AND any_of_it.digest = lost.digest
)
"""
"""A call whose checkpoint was never stored, as under ``durability="async"``, is this one."""

_BEGIN: Final = """
INSERT INTO daruma_effects
    (thread_id, checkpoint_ns, checkpoint_id, call, digest, run, key, settles, workspace)
VALUES (%(thread_id)s, %(checkpoint_ns)s, %(checkpoint_id)s, %(call)s, %(digest)s, %(run)s,
    %(key)s, %(settles)s, %(workspace)s)
ON CONFLICT (thread_id, call, digest, checkpoint_ns, checkpoint_id)
DO UPDATE SET call = excluded.call
RETURNING *
"""
_DROP_PASSED: Final = """
DELETE FROM daruma_effects AS passed
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND outcome IS NOT NULL
AND checkpoint_id <> %(checkpoint_id)s AND checkpoint_id < (
    SELECT max(checkpoint_id) FROM checkpoints
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
)
AND EXISTS (
    SELECT FROM checkpoints AS kept
    WHERE kept.thread_id = passed.thread_id AND kept.checkpoint_ns = passed.checkpoint_ns
    AND kept.checkpoint_id = passed.checkpoint_id
)
"""
"""What the thread has left behind: it can only be come to again by a fork, which has its own."""

_AGAIN: Final = """
UPDATE daruma_effects SET attempt = %(attempt)s, run = %(run)s
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
AND checkpoint_id = %(checkpoint_id)s AND call = %(call)s AND digest = %(digest)s
"""
_END: Final = """
UPDATE daruma_effects SET kind = %(kind)s, outcome = %(outcome)s, ended_at = now()
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
AND checkpoint_id = %(checkpoint_id)s AND call = %(call)s AND digest = %(digest)s
"""
_FORGET: Final = """
DELETE FROM daruma_effects
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
AND checkpoint_id = %(checkpoint_id)s AND call = %(call)s AND digest = %(digest)s
AND outcome IS NULL
"""
_CUT_SHORT: Final = """
SELECT * FROM daruma_effects
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
AND checkpoint_id = %(checkpoint_id)s AND workspace = %(workspace)s
AND outcome IS NULL AND run <> %(run)s
ORDER BY began_at DESC
"""


class PostgresJournal:
    """The journal at one place of a thread; ``transact`` asserts who may write there."""

    def __init__(
        self,
        transact: Callable[[Work[Any]], Awaitable[Any]],
        serde: SerializerProtocol,
        sealing: Sealing,
        place: Place,
        run: str,
    ) -> None:
        self._transact = transact
        self._serde = serde
        self._sealing = sealing
        self._place = place
        self._run = run

    async def begin(self, effect: Effect) -> Entry:
        values = self._values(effect) | {
            "key": key_of(self._place, effect),
            "settles": effect.settles,
            "workspace": self._marked(effect.workspace),
        }
        (row,) = await self._do((_DROP_PASSED, values), (_ADOPT, values), (_BEGIN, values))
        return self._entry(row, effect.workspace)

    async def again(self, entry: Entry) -> Entry:
        attempt = entry.attempt + 1
        await self._do((_AGAIN, self._values(entry.effect) | {"attempt": attempt}))
        return replace(entry, attempt=attempt, cut_short=False)

    async def end(self, entry: Entry, outcome: Outcome) -> None:
        said = self._serde.dumps_typed([outcome.status, outcome.text, outcome.reference])
        kind, packed = self._sealing.seal(said, self._sealed_at(entry.key))
        values = self._values(entry.effect) | {"kind": kind, "outcome": packed}
        await self._do((_END, values))

    async def forget(self, entry: Entry) -> None:
        await self._do((_FORGET, self._values(entry.effect)))

    async def cut_short(self, workspace: str) -> Sequence[Entry]:
        values = self._place._asdict() | {"workspace": self._marked(workspace), "run": self._run}
        return [self._entry(row, workspace) for row in await self._do((_CUT_SHORT, values))]

    def _values(self, effect: Effect) -> dict[str, Any]:
        own = {"call": effect.call, "digest": effect.digest, "run": self._run}
        return self._place._asdict() | own

    def _marked(self, workspace: str) -> str:
        """Return what a workspace is known by: its path stays out of the database.

        It is not bound to the thread, so that a copy of one is in the same workspace.
        """
        return workspace and self._sealing.mark(workspace, ("", "workspace"))

    def _entry(self, row: DictRow, workspace: str) -> Entry:
        effect = Effect(row["call"], row["digest"], row["settles"], workspace)
        outcome = None
        if row["outcome"] is not None:
            value = (row["kind"], row["outcome"])
            opened = self._sealing.open(value, self._sealed_at(row["key"]))
            outcome = Outcome(*self._serde.loads_typed(opened))
        return Entry(
            effect,
            key=row["key"],
            attempt=row["attempt"],
            cut_short=outcome is None and row["run"] != self._run,
            outcome=outcome,
        )

    def _sealed_at(self, key: str) -> tuple[str, ...]:
        return self._place.thread_id, "effect", key

    async def _do(self, *statements: tuple[str, dict[str, Any]]) -> list[DictRow]:
        """Carry out statements in one transaction; return the rows of the last one."""

        async def work(connection: Connection) -> list[DictRow]:
            async with connection.pipeline():
                for statement, values in statements:
                    done = await connection.execute(statement, values)
            return await done.fetchall() if done.description else []

        rows: list[DictRow] = await self._transact(work)
        return rows
