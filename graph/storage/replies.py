"""Accepted replies in Postgres: one row each, and only the first one gets in."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from daruma.graph.bridge import on, run

if TYPE_CHECKING:
    from daruma.graph.storage.saver import PostgresSaver

MAKE: Final = """
CREATE TABLE IF NOT EXISTS daruma_replies (
    thread_id text NOT NULL,
    interrupt_id text NOT NULL,
    kind text NOT NULL,
    reply bytea NOT NULL,
    accepted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (thread_id, interrupt_id)
)
"""
_ACCEPT: Final = """
INSERT INTO daruma_replies (thread_id, interrupt_id, kind, reply) VALUES (%s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""
_FIND: Final = """
SELECT interrupt_id, kind, reply FROM daruma_replies
WHERE thread_id = %s AND interrupt_id = ANY(%s)
"""
_DELETE: Final = "DELETE FROM daruma_replies WHERE thread_id = %s"


class PostgresReplies:
    """The replies beside a saver's checkpoints, over its pool; see ``graph/replies.py``."""

    def __init__(self, saver: "PostgresSaver") -> None:
        self._saver = saver

    def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        return run(self._accept(thread_id, replies), loop=self._saver.loop)

    async def aaccept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        return await on(self._saver.loop, self._accept(thread_id, replies))

    def accepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        return run(self._accepted(thread_id, ids), loop=self._saver.loop)

    async def aaccepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        return await on(self._saver.loop, self._accepted(thread_id, ids))

    async def delete(self, thread_id: str) -> None:
        """Forget a thread's replies. Called on the saver's own loop."""
        async with self._saver.connection() as connection:
            await connection.execute(_DELETE, [thread_id])

    async def _accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        # In one order, so that two who answer the same questions can not wait for each other.
        rows = [
            [thread_id, id_, *self._saver.serde.dumps_typed(replies[id_])]
            for id_ in sorted(replies)
        ]
        async with self._saver.connection() as connection:
            try:
                async with connection.transaction():
                    for row in rows:
                        done = await connection.execute(_ACCEPT, row)
                        if not done.rowcount:
                            raise _Taken
            except _Taken:
                return False
        return True

    async def _accepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        async with self._saver.connection() as connection:
            found = await connection.execute(_FIND, [thread_id, list(ids)])
            rows = await found.fetchall()
        load = self._saver.serde.loads_typed
        return {row["interrupt_id"]: load((row["kind"], row["reply"])) for row in rows}


class _Taken(Exception):
    """One of the questions is answered: the transaction goes back."""
