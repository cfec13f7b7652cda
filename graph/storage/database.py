"""The one way to the database: every operation of the saver, the lease, the journal goes through.

An operation may be made twice, as nobody can tell whether one that was cut off took place: each is
written so that a second time changes nothing.
"""

from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from psycopg.rows import DictRow

from daruma.graph.bridge import on, run
from daruma.graph.storage.patience import Patience
from daruma.graph.storage.pool import Connection, Pool

T = TypeVar("T")

Work = Callable[[Connection], Awaitable[T]]
"""What is done in one transaction. It may be begun again: it must not change anything else."""


@dataclass(frozen=True)
class Database:
    """A pool of connections, the loop that they live on, and how long an outage is ridden out."""

    pool: Pool
    loop: AbstractEventLoop
    patience: Patience = field(default_factory=Patience)

    async def patiently(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Carry out an operation on this database's own loop; one that was lost is made again.

        What takes the server longer than 8 s a statement is done within
        :func:`~daruma.graph.storage.connection.answers_within`. Raises
        :class:`~daruma.state.errors.StorageUnavailable` when the database stays lost.
        """
        return await self.patience.over(operation, self.pool)

    async def statement(self, statement: str, values: Mapping[str, Any]) -> list[DictRow]:
        """Carry out one statement, a transaction by itself, from any loop; return its rows."""
        return await on(self.loop, self.patiently(lambda: self._carried_out(statement, values)))

    async def _carried_out(self, statement: str, values: Mapping[str, Any]) -> list[DictRow]:
        connection = await self.pool.getconn()  # its context would commit, which is done already
        try:
            return await connection.carried_out(statement, values)
        finally:
            await self.pool.putconn(connection)

    async def transact(self, work: Work[T]) -> T:
        """Do work in one transaction, from any loop."""
        return await on(self.loop, self.patiently(lambda: self._once(work)))

    def transact_waiting(self, work: Work[T]) -> T:
        """Do work in one transaction, from a thread that can wait."""
        return run(self.patiently(lambda: self._once(work)), loop=self.loop)

    async def _once(self, work: Work[T]) -> T:
        async with self.pool.connection() as connection, connection.transaction():
            return await work(connection)
