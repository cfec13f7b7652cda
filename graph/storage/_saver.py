"""LangGraph's Postgres checkpointer, for callers on any thread and on any event loop.

The stock one belongs to the loop it was made on, and runs one operation at a time (langgraph#7259).
"""

from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Hashable,
    Iterator,
    Mapping,
    Sequence,
)
from copy import copy
from typing import Any, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory, get_checkpoint_id
from langgraph.checkpoint.serde.base import SerializerProtocol

from daruma.graph.storage._database import Database
from daruma.graph.storage._events import EventLog
from daruma.graph.storage._fenced_saver import FencedSaver, LastRead
from daruma.graph.storage._journal import PostgresJournal, PostgresOutputs, PostgresReplies
from daruma.graph.storage._leases import PostgresLeases
from daruma.graph.storage._ledgers import Leases, Place
from daruma.graph.storage._manifest import DamagedCheckpoint, advised, replayed
from daruma.graph.storage._schema import make_tables
from daruma.graph.storage._sealing import Checked, Sealing
from daruma.graph.storage._sound_saver import SoundSaver, checked_id, copied, place_of
from daruma.graph.storage._threads import copy_thread, delete_for_runs, delete_thread, prune_threads
from daruma.graph.sync import run

T = TypeVar("T")


class PostgresSaver(FencedSaver):
    """A checkpointer over a pool of connections that live on the loop which makes this object.

    Every operation takes a connection of its own. Synchronous methods raise ``RuntimeError`` on the
    thread of that loop; reading raises :class:`~daruma.state.errors.DamagedState`, naming the
    checkpoint, and the one before it.
    """

    def __init__(
        self, database: Database, serde: SerializerProtocol, sealing: Sealing | None = None
    ) -> None:
        super().__init__(database, serde, sealing or Checked())
        self.replies = PostgresReplies(database, serde, self.sealing)
        self.own_leases = PostgresLeases(database)
        self.leases: Leases = self.own_leases
        self.events = EventLog(database, self.sealing)
        self._newest: dict[str, str] = {}

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

    def going_on_from(self, thread_id: str, checkpoint_id: str) -> Self:
        """Return a saver to which an earlier checkpoint is a thread's newest one, until it writes.

        So a thread goes on as if the later ones, which are damaged, had never been written: what
        the tasks of that checkpoint had done by then stays done.
        """
        own = copy(self)
        own._newest = {thread_id: checkpoint_id}
        own._checkpoint = own._replayed = None
        return own

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.home(lambda: self._get(config))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.home_waiting(lambda: self._get(config))

    async def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        named = config["configurable"]
        earlier = self._newest.get(named["thread_id"])
        if earlier and not named.get("checkpoint_ns") and not get_checkpoint_id(config):
            config = {**config, "configurable": {**named, "checkpoint_id": earlier}}
        with_newest = config
        found = await self._once(
            self._checkpoint,
            place_of(config),
            lambda: SoundSaver.aget_tuple(self, with_newest),
        )
        return copied(found) if found and self._checkpoint else found

    async def _once(
        self, last: LastRead[T] | None, key: Hashable, read: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        if last is None:
            return await self._advising(read)
        return await last.read(key, lambda: self._advising(read))

    async def _put(self, config: RunnableConfig, *args: Any, **kwargs: Any) -> RunnableConfig:
        put = await super()._put(config, *args, **kwargs)
        if not put["configurable"]["checkpoint_ns"]:
            self._newest.pop(put["configurable"]["thread_id"], None)
        return put

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self.home(lambda: self._history(config, channels))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self.home_waiting(lambda: self._history(config, channels))

    async def _history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._once(
            self._replayed,
            (*place_of(config), *sorted(channels)),
            lambda: SoundSaver.aget_delta_channel_history(self, config=config, channels=channels),
        )

    async def _advising(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            return await read()
        except DamagedCheckpoint as damage:
            raise await advised(damage, self.database.pool, self._read_whole) from damage

    async def _read_whole(self, config: RunnableConfig) -> None:
        """Read a checkpoint with the histories of all channels that may have one."""
        found = await SoundSaver.aget_tuple(self, config)
        if found:
            checkpoint = found.checkpoint
            channels = replayed(checkpoint["channel_versions"], checkpoint["channel_values"])
            await SoundSaver.aget_delta_channel_history(self, config=config, channels=channels)

    async def adelete_thread(self, thread_id: str) -> None:
        await delete_thread(self, checked_id(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        run(delete_thread(self, checked_id(thread_id)), loop=self.loop)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await copy_thread(self, checked_id(source_thread_id), checked_id(target_thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        run(
            copy_thread(self, checked_id(source_thread_id), checked_id(target_thread_id)),
            loop=self.loop,
        )

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await delete_for_runs(self, run_ids)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        run(delete_for_runs(self, run_ids), loop=self.loop)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await prune_threads(self, [*map(checked_id, thread_ids)], strategy)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        run(prune_threads(self, [*map(checked_id, thread_ids)], strategy), loop=self.loop)

    async def setup(self) -> None:
        """Make the tables; any number of processes may do so at once."""
        await self.home(self._make_tables)

    async def _make_tables(self) -> None:
        async with self.database.pool.connection() as connection:
            await make_tables(connection)

    async def alist(
        self, config: RunnableConfig | None, **search: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for found in await self.home(lambda: self._collect(config, **search)):
            yield found

    def list(self, config: RunnableConfig | None, **search: Any) -> Iterator[CheckpointTuple]:
        yield from self.home_waiting(lambda: self._collect(config, **search))

    async def _collect(
        self, config: RunnableConfig | None, **search: Any
    ) -> Sequence[CheckpointTuple]:
        async def collect() -> Sequence[CheckpointTuple]:
            if config and "thread_id" in config["configurable"]:
                place_of(config)
            return [each async for each in SoundSaver.alist(self, config, **search)]

        return await self._advising(collect)
