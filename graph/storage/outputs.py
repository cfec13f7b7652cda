"""Large outputs in Postgres: one row each, by thread and digest."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from daruma.graph.storage.database import Work
from daruma.graph.storage.pool import Connection

_KEEP: Final = """
INSERT INTO daruma_outputs (thread_id, id, output) VALUES (%s, %s, %s)
ON CONFLICT (thread_id, id) DO NOTHING
"""
_READ: Final = "SELECT output FROM daruma_outputs WHERE thread_id = %s AND id = %s"


class PostgresOutputs:
    """The outputs beside a saver's checkpoints; ``transact`` asserts who may write there."""

    def __init__(self, transact: Callable[[Work[Any]], Awaitable[Any]]) -> None:
        self._transact = transact

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        async def keep(connection: Connection) -> None:
            await connection.execute(_KEEP, [thread_id, id_, text])

        await self._transact(keep)

    async def read(self, thread_id: str, id_: str) -> str | None:
        async def read(connection: Connection) -> str | None:
            row = await (await connection.execute(_READ, [thread_id, id_])).fetchone()
            return row["output"] if row else None

        found: str | None = await self._transact(read)
        return found
