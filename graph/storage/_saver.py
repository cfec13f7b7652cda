"""Our checkpointer as it is handed out: with what belongs to a thread beside its checkpoints."""

from collections.abc import Sequence
from copy import copy
from typing import Self

from langgraph.checkpoint.serde.base import SerializerProtocol

from daruma.graph.storage._checkpoints import CheckpointSaver, checked_id
from daruma.graph.storage._database import Database
from daruma.graph.storage._events import EventLog
from daruma.graph.storage._journal import PostgresJournal, PostgresOutputs, PostgresReplies
from daruma.graph.storage._leases import PostgresLeases
from daruma.graph.storage._ledgers import Leases, Place
from daruma.graph.storage._schema import make_tables
from daruma.graph.storage._sealing import Checked, Sealing
from daruma.graph.storage._threads import copy_thread, delete_for_runs, delete_thread, prune_threads
from daruma.graph.sync import run


class PostgresSaver(CheckpointSaver):
    """A checkpointer over a pool of connections, for callers on any thread and any event loop."""

    def __init__(
        self, database: Database, serde: SerializerProtocol, sealing: Sealing | None = None
    ) -> None:
        super().__init__(database, serde, sealing or Checked())
        self.replies = PostgresReplies(database, serde, self.sealing)
        self.own_leases = PostgresLeases(database)
        self.leases: Leases = self.own_leases
        self.events = EventLog(database, self.sealing)

    def leasing(self, leases: Leases) -> Self:
        """Return a saver over the same data that takes threads in another way."""
        own = copy(self)
        own.leases = leases
        return own

    def journal_at(self, place: Place, run: str) -> PostgresJournal:
        """Return the journal of effects for a place of a thread, as one run keeps it."""
        return PostgresJournal(self.statement, self.serde, self.sealing, place, run)

    @property
    def outputs(self) -> PostgresOutputs:
        """Where large outputs are kept; with a hold, each is kept under it."""
        return PostgresOutputs(self.statement, self.sealing)

    async def setup(self) -> None:
        """Make the tables; any number of processes may do so at once."""
        await self.home(self._make_tables)

    async def _make_tables(self) -> None:
        async with self.database.pool.connection() as connection:
            await make_tables(connection)

    async def adelete_thread(self, thread_id: str) -> None:
        await delete_thread(self, checked_id(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        run(self.adelete_thread(thread_id), loop=self.loop)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await copy_thread(self, checked_id(source_thread_id), checked_id(target_thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        run(self.acopy_thread(source_thread_id, target_thread_id), loop=self.loop)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await delete_for_runs(self, run_ids)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        run(self.adelete_for_runs(run_ids), loop=self.loop)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await prune_threads(self, [*map(checked_id, thread_ids)], strategy)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        run(self.aprune(thread_ids, strategy=strategy), loop=self.loop)
