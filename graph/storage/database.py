"""The one way to the database: every operation of the saver, the lease, the journal goes through.

An operation may be made twice, as nobody can tell whether one that was cut off took place: each is
written so that a second time changes nothing.
"""

from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from daruma.graph.bridge import on, run
from daruma.graph.storage.pool import Connection, Pool

T = TypeVar("T")

Work = Callable[[Connection], Awaitable[T]]
"""What is done in one transaction. It may be begun again: it must not change anything else."""


@dataclass(frozen=True)
class Database:
    """A pool of connections, and the loop that they live on."""

    pool: Pool
    loop: AbstractEventLoop

    async def patiently(self, operation: Callable[[], Awaitable[T]]) -> T:
        """Carry out an operation on this database's own loop; one that was lost is made again."""
        return await operation()

    async def transact(self, work: Work[T]) -> T:
        """Do work in one transaction, from any loop."""
        return await on(self.loop, self.patiently(lambda: self._once(work)))

    def transact_waiting(self, work: Work[T]) -> T:
        """Do work in one transaction, from a thread that can wait."""
        return run(self.patiently(lambda: self._once(work)), loop=self.loop)

    async def _once(self, work: Work[T]) -> T:
        async with self.pool.connection() as connection, connection.transaction():
            return await work(connection)
