"""LangGraph's Postgres checkpointer, for callers on any thread and on any event loop.

The stock one belongs to the loop it was made on, and runs one operation at a time (langgraph#7259).
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncCursor, sql
from psycopg.rows import DictRow, dict_row

from daruma.graph.bridge import on, run
from daruma.graph.journals import Place
from daruma.graph.leases import Hold
from daruma.graph.storage.database import Database
from daruma.graph.storage.fence import ASSERT, lost_by
from daruma.graph.storage.journal import PostgresJournal
from daruma.graph.storage.leases import PostgresLeases
from daruma.graph.storage.replies import PostgresReplies
from daruma.graph.storage.schema import OF_A_THREAD
from daruma.graph.storage.tables import make_tables
from daruma.state.storage import DamagedState

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


def _damaged(thread_id: str, checkpoint_id: str | None, error: DamagedState) -> DamagedState:
    return DamagedState(f"checkpoint {checkpoint_id} of thread {thread_id!r}: {error}")


class PostgresSaver(AsyncPostgresSaver):
    """A checkpointer over a pool of connections that live on the loop which makes this object.

    Every operation takes a connection of its own. Synchronous methods raise ``RuntimeError`` on the
    thread of that loop; reading raises :class:`DamagedState`, naming the checkpoint.
    """

    def __init__(self, database: Database, serde: SerializerProtocol) -> None:
        super().__init__(database.pool, serde=serde)
        self.database = database
        self.replies = PostgresReplies(database, serde)
        self.leases = PostgresLeases(database)
        self.hold: Hold | None = None

    def held(self, hold: Hold) -> Self:
        """Return the saver of one run: each of its writes asserts that the run has its thread.

        A write of one that has lost it raises :class:`~daruma.state.storage.HoldLost`.
        """
        own = copy(self)
        own.hold = hold
        return own

    def journal_at(self, place: Place, run: str) -> PostgresJournal:
        """Return the journal of effects for a place of a thread, as one run keeps it."""
        return PostgresJournal(self.database, self.serde, place, run, self.hold)

    async def home(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carry out an operation on the loop that the connections live on, from any loop."""
        return await on(self.loop, self._fenced(operation))

    def home_waiting(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the same, from a thread that can wait."""
        return run(self._fenced(operation), loop=self.loop)

    async def _fenced(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        with lost_by(self.hold):
            return await self.database.patiently(operation)

    aget_tuple = _awaiting(AsyncPostgresSaver.aget_tuple)
    aput = _awaiting(AsyncPostgresSaver.aput)
    aput_writes = _awaiting(AsyncPostgresSaver.aput_writes)
    aprune = _awaiting(AsyncPostgresSaver.aprune)

    get_tuple = _waiting(AsyncPostgresSaver.aget_tuple)
    put = _waiting(AsyncPostgresSaver.aput)
    put_writes = _waiting(AsyncPostgresSaver.aput_writes)
    prune = _waiting(AsyncPostgresSaver.aprune)

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
        try:
            return await AsyncPostgresSaver.aget_delta_channel_history(
                self, config=config, channels=channels
            )
        except DamagedState as error:
            named = config["configurable"]
            raise _damaged(named["thread_id"], named.get("checkpoint_id"), error) from error

    async def adelete_thread(self, thread_id: str) -> None:
        await self.home(lambda: self._delete(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        self.home_waiting(lambda: self._delete(thread_id))

    async def _delete(self, thread_id: str) -> None:
        await AsyncPostgresSaver.adelete_thread(self, thread_id)
        async with self.database.pool.connection() as connection, connection.transaction():
            for table in OF_A_THREAD:
                rows = sql.SQL("DELETE FROM {} WHERE thread_id = %s").format(sql.Identifier(table))
                await connection.execute(rows, [thread_id])

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
        found = AsyncPostgresSaver.alist(self, config, **search)
        return [each async for each in found]

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        try:
            return await super()._load_checkpoint_tuple(value)
        except DamagedState as error:
            raise _damaged(value["thread_id"], value["checkpoint_id"], error) from error

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
