"""Accepted replies in Postgres: one row each, and only the first one gets in."""

from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import uuid4

from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import Rollback
from psycopg.rows import DictRow

from daruma.graph.replies import decides
from daruma.graph.storage.database import Database, Work
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.sealing import Sealing
from daruma.state.errors import DamagedState

_ACCEPT: Final = """
INSERT INTO daruma_replies (thread_id, interrupt_id, kind, reply, acceptance)
VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (thread_id, interrupt_id) DO UPDATE SET acceptance = excluded.acceptance
WHERE daruma_replies.acceptance = excluded.acceptance
"""
_FIND: Final = """
SELECT interrupt_id, kind, reply FROM daruma_replies
WHERE thread_id = %s AND interrupt_id = ANY(%s)
"""
_ALL: Final = "SELECT interrupt_id, kind, reply FROM daruma_replies WHERE thread_id = %s"


class PostgresReplies:
    """The replies beside a saver's checkpoints; see ``graph/replies.py``."""

    def __init__(self, database: Database, serde: SerializerProtocol, sealing: Sealing) -> None:
        self._database = database
        self._serde = serde
        self._sealing = sealing

    def accept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        return self._database.transact_waiting(self._accepting(thread_id, replies))

    async def aaccept(self, thread_id: str, replies: Mapping[str, Any]) -> bool:
        return await self._database.transact(self._accepting(thread_id, replies))

    def accepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        return self._database.transact_waiting(self._finding(thread_id, ids))

    async def aaccepted(self, thread_id: str, ids: Collection[str]) -> dict[str, Any]:
        return await self._database.transact(self._finding(thread_id, ids))

    async def adecided(self, thread_id: str) -> bool:
        async def find(connection: Connection) -> list[DictRow]:
            return await (await connection.execute(_ALL, [thread_id])).fetchall()

        rows = await self._database.transact(find)
        return any(decides(self._opened(thread_id, row)) for row in rows)

    def _accepting(self, thread_id: str, replies: Mapping[str, Any]) -> Work[bool]:
        # In one order, so that two who answer the same questions can not wait for each other.
        # Which acceptance it was is kept: one whose acknowledgement was lost is made again.
        own = uuid4().hex
        rows = [
            [thread_id, id_, *self._sealed(thread_id, id_, replies[id_]), own]
            for id_ in sorted(replies)
        ]

        async def accept(connection: Connection) -> bool:
            async with connection.transaction() as together:
                for row in rows:
                    done = await connection.execute(_ACCEPT, row)
                    if not done.rowcount:
                        raise Rollback(together)
                return True
            return False

        return accept

    def _finding(self, thread_id: str, ids: Collection[str]) -> Work[dict[str, Any]]:
        async def find(connection: Connection) -> dict[str, Any]:
            found = await connection.execute(_FIND, [thread_id, list(ids)])
            return {
                row["interrupt_id"]: self._opened(thread_id, row) for row in await found.fetchall()
            }

        return find

    def _sealed(self, thread_id: str, id_: str, reply: Any) -> tuple[str, bytes]:
        return self._sealing.seal(self._serde.dumps_typed(reply), (thread_id, "reply", id_))

    def _opened(self, thread_id: str, row: DictRow) -> Any:
        """Read a reply. Raises :class:`~daruma.state.errors.DamagedState`."""
        id_ = row["interrupt_id"]
        try:
            value = self._sealing.open((row["kind"], row["reply"]), (thread_id, "reply", id_))
            return self._serde.loads_typed(value)
        except DamagedState as error:
            raise DamagedState(f"the reply to {id_} on thread {thread_id!r}: {error}") from error
