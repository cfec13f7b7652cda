"""LangGraph's Postgres checkpointer, for callers on any thread and on any event loop.

The stock one belongs to the loop it was made on, and runs one operation at a time (langgraph#7259).
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.postgres._ainternal import get_connection
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow, dict_row

from daruma.graph.bridge import on, run
from daruma.graph.storage.replies import PostgresReplies
from daruma.graph.storage.tables import make_tables
from daruma.state.storage import DamagedState

P = ParamSpec("P")
T = TypeVar("T")

Method = Callable[Concatenate[Any, P], T]


def _awaiting(method: Method[P, Coroutine[Any, Any, T]]) -> Method[P, Coroutine[Any, Any, T]]:
    """Make an async method of the saver callable from every loop."""

    @wraps(method)
    async def at_home(self: "PostgresSaver", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await on(self.loop, method(self, *args, **kwargs))

    return at_home


def _waiting(method: Method[P, Coroutine[Any, Any, T]]) -> Method[P, T]:
    """Make the synchronous twin of an async method of the saver."""

    @wraps(method)
    def at_home(self: "PostgresSaver", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(method(self, *args, **kwargs), loop=self.loop)

    return at_home


def _damaged(thread_id: str, checkpoint_id: str | None, error: DamagedState) -> DamagedState:
    return DamagedState(f"checkpoint {checkpoint_id} of thread {thread_id!r}: {error}")


class PostgresSaver(AsyncPostgresSaver):
    """A checkpointer over a pool of connections that live on the loop which makes this object.

    Every operation takes a connection of its own. Synchronous methods raise ``RuntimeError`` on the
    thread of that loop; reading raises :class:`DamagedState`, naming the checkpoint.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.replies = PostgresReplies(self)

    def connection(self) -> AbstractAsyncContextManager[AsyncConnection[DictRow]]:
        """Take a connection of the pool; only on the loop that this object was made on."""
        return get_connection(self.conn)

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
        return await on(self.loop, self._history(config, channels))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return run(self._history(config, channels), loop=self.loop)

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
        await on(self.loop, self._delete(thread_id))

    def delete_thread(self, thread_id: str) -> None:
        run(self._delete(thread_id), loop=self.loop)

    async def _delete(self, thread_id: str) -> None:
        await AsyncPostgresSaver.adelete_thread(self, thread_id)
        await self.replies.delete(thread_id)

    async def setup(self) -> None:
        """Make the tables; any number of processes may do so at once."""
        await on(self.loop, self._make_tables())

    async def _make_tables(self) -> None:
        async with self.connection() as connection:
            await make_tables(connection)

    async def alist(
        self, config: RunnableConfig | None, **search: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for found in await on(self.loop, self._collect(config, **search)):
            yield found

    def list(self, config: RunnableConfig | None, **search: Any) -> Iterator[CheckpointTuple]:
        yield from run(self._collect(config, **search), loop=self.loop)

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
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self.connection())
            if pipeline:
                await stack.enter_async_context(connection.pipeline())
            cursor = connection.cursor(binary=True, row_factory=dict_row)
            yield await stack.enter_async_context(cursor)
