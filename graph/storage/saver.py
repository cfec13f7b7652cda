"""LangGraph's Postgres checkpointer, for callers on any thread and on any event loop.

The stock one belongs to the loop it was made on, and runs one operation at a time (langgraph#7259).
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory, get_checkpoint_id
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncCursor
from psycopg.rows import DictRow, dict_row

from daruma.graph.bridge import on, run
from daruma.graph.journals import Place
from daruma.graph.leases import Hold, Leases
from daruma.graph.storage.damage import DamagedCheckpoint, advised
from daruma.graph.storage.database import Database, Work
from daruma.graph.storage.event_log import EventLog
from daruma.graph.storage.fence import ASSERT, lost_by
from daruma.graph.storage.journal import PostgresJournal
from daruma.graph.storage.leases import PostgresLeases
from daruma.graph.storage.manifest import replayed
from daruma.graph.storage.outputs import PostgresOutputs
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.replies import PostgresReplies
from daruma.graph.storage.sealing import Checked, Sealing
from daruma.graph.storage.sound_saver import SoundSaver
from daruma.graph.storage.tables import make_tables
from daruma.graph.storage.upkeep import copy_thread, delete_for_runs, delete_thread, prune_threads

P = ParamSpec("P")
T = TypeVar("T")

Method = Callable[Concatenate[Any, P], T]


def _awaiting(method: Method[P, Coroutine[Any, Any, T]]) -> Method[P, Coroutine[Any, Any, T]]:
    """Make an async method of the saver callable from every loop, and patient."""

    @wraps(method)
    async def at_home(self: "PostgresSaver", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.home(lambda: method(self, *args, **kwargs))

    return at_home


def _waiting(method: Method[P, Coroutine[Any, Any, T]]) -> Method[P, T]:
    """Make the synchronous twin of an async method of the saver."""

    @wraps(method)
    def at_home(self: "PostgresSaver", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.home_waiting(lambda: method(self, *args, **kwargs))

    return at_home


class PostgresSaver(SoundSaver):
    """A checkpointer over a pool of connections that live on the loop which makes this object.

    Every operation takes a connection of its own. Synchronous methods raise ``RuntimeError`` on the
    thread of that loop; reading raises :class:`~daruma.state.storage.DamagedState`, naming the
    checkpoint, and the one before it.
    """

    def __init__(
        self, database: Database, serde: SerializerProtocol, sealing: Sealing | None = None
    ) -> None:
        super().__init__(database.pool, serde, sealing or Checked())
        self.database = database
        self.replies = PostgresReplies(database, serde, self.sealing)
        self.own_leases = PostgresLeases(database)
        self.leases: Leases = self.own_leases
        self.events = EventLog(database, self.sealing)
        self.hold: Hold | None = None
        self._newest: dict[str, str] = {}

    def held(self, hold: Hold) -> Self:
        """Return the saver of one run: each of its writes asserts that the run has its thread.

        A write of one that has lost it raises :class:`~daruma.state.storage.HoldLost`.
        """
        own = copy(self)
        own.hold = hold
        return own

    def leasing(self, leases: Leases) -> Self:
        """Return a saver over the same data that takes threads in another way."""
        own = copy(self)
        own.leases = leases
        return own

    def journal_at(self, place: Place, run: str) -> PostgresJournal:
        """Return the journal of effects for a place of a thread, as one run keeps it."""
        return PostgresJournal(self.transact, self.serde, self.sealing, place, run)

    @property
    def outputs(self) -> PostgresOutputs:
        """Where large outputs are kept; with a hold, each is kept under it."""
        return PostgresOutputs(self.transact, self.sealing)

    def going_on_from(self, thread_id: str, checkpoint_id: str) -> Self:
        """Return a saver to which an earlier checkpoint is a thread's newest one, until it writes.

        So a thread goes on as if the later ones, which are damaged, had never been written: what
        the tasks of that checkpoint had done by then stays done.
        """
        own = copy(self)
        own._newest = {thread_id: checkpoint_id}
        return own

    async def home(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carry out an operation on the loop that the connections live on, from any loop."""
        return await on(self.loop, self._fenced(operation))

    def home_waiting(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the same, from a thread that can wait."""
        return run(self._fenced(operation), loop=self.loop)

    async def _fenced(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with lost_by(self.hold):
            return await self.database.patiently(operation)

    aput_writes = _awaiting(AsyncPostgresSaver.aput_writes)

    put_writes = _waiting(AsyncPostgresSaver.aput_writes)

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
        return await self._advising(lambda: SoundSaver.aget_tuple(self, with_newest))

    async def aput(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        return await self.home(lambda: self._put(*args, **kwargs))

    def put(self, *args: Any, **kwargs: Any) -> RunnableConfig:
        return self.home_waiting(lambda: self._put(*args, **kwargs))

    async def _put(self, config: RunnableConfig, *args: Any, **kwargs: Any) -> RunnableConfig:
        put = await SoundSaver.aput(self, config, *args, **kwargs)
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
        return await self._advising(
            lambda: SoundSaver.aget_delta_channel_history(self, config=config, channels=channels)
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

    async def transact(self, work: Work[T]) -> T:
        """Do work in one transaction, from any loop; it asserts the hold, where there is one."""

        async def asserted(connection: Connection) -> T:
            if self.hold:
                await connection.execute(ASSERT, [self.hold.thread_id, self.hold.token])
            return await work(connection)

        with lost_by(self.hold):
            return await self.database.transact(asserted)

    async def adelete_thread(self, thread_id: str) -> None:
        await delete_thread(self, str(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        run(delete_thread(self, str(thread_id)), loop=self.loop)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await copy_thread(self, str(source_thread_id), str(target_thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        run(copy_thread(self, str(source_thread_id), str(target_thread_id)), loop=self.loop)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await delete_for_runs(self, run_ids)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        run(delete_for_runs(self, run_ids), loop=self.loop)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await prune_threads(self, thread_ids, strategy)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        run(prune_threads(self, thread_ids, strategy), loop=self.loop)

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
            return [each async for each in SoundSaver.alist(self, config, **search)]

        return await self._advising(collect)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        """Open a cursor; one in a pipeline is for writing, and is a transaction."""
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self.database.pool.connection())
            if pipeline:
                await stack.enter_async_context(connection.pipeline())
                await stack.enter_async_context(connection.transaction())
            cursor = connection.cursor(binary=True, row_factory=dict_row)
            await stack.enter_async_context(cursor)
            if pipeline and self.hold:
                await cursor.execute(ASSERT, [self.hold.thread_id, self.hold.token])
            yield cursor
