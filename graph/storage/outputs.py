"""Large outputs in Postgres: one row each, by thread and digest."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from daruma.graph.storage.database import Work
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.sealing import Sealing
from daruma.state.storage import DamagedState

_KEEP: Final = """
INSERT INTO daruma_outputs (thread_id, id, kind, output) VALUES (%s, %s, %s, %s)
ON CONFLICT (thread_id, id) DO NOTHING
"""
_READ: Final = "SELECT kind, output FROM daruma_outputs WHERE thread_id = %s AND id = %s"


class PostgresOutputs:
    """The outputs beside a saver's checkpoints; ``transact`` asserts who may write there."""

    def __init__(self, transact: Callable[[Work[Any]], Awaitable[Any]], sealing: Sealing) -> None:
        self._transact = transact
        self._sealing = sealing

    async def keep(self, thread_id: str, id_: str, text: str) -> None:
        kind, output = self._sealing.seal(("text", text.encode()), (thread_id, "output", id_))

        async def keep(connection: Connection) -> None:
            await connection.execute(_KEEP, [thread_id, id_, kind, output])

        await self._transact(keep)

    async def read(self, thread_id: str, id_: str) -> str | None:
        """Return an output. Raises :class:`~daruma.state.storage.DamagedState`."""

        async def read(connection: Connection) -> Any:
            return await (await connection.execute(_READ, [thread_id, id_])).fetchone()

        row = await self._transact(read)
        if row is None:
            return None
        try:
            place = thread_id, "output", id_
            return self._sealing.open((row["kind"], row["output"]), place)[1].decode()
        except DamagedState as error:
            raise DamagedState(f"the output {id_} of thread {thread_id!r}: {error}") from error
