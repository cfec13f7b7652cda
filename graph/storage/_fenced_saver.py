"""What a run has read last of its thread, for the next who reads the same.

A run looks at its thread at the door, and LangGraph loads the same again to go on from. While a
thread is held nobody else writes on it, and what the run itself writes makes this be forgotten.
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from copy import copy
from typing import Any, Final, Generic, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import ERROR_SOURCE_NODE, NULL_TASK_ID
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncCursor
from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow, dict_row

from daruma.graph.storage._database import Database, Work
from daruma.graph.storage._ledgers import Hold
from daruma.graph.storage._pool import Connection
from daruma.graph.storage._saving import (
    APART,
    ASSERT,
    SAVE,
    SAVE_AGAIN,
    WRITE,
    WRITE_OVER,
    PendingWrites,
    WriteRow,
    fence_of,
    lost_by,
    values_of,
)
from daruma.graph.storage._sealing import Sealing
from daruma.graph.storage._sound_saver import SoundSaver
from daruma.graph.sync import on, run

T = TypeVar("T")


class LastRead(Generic[T]):
    """Holds one value, and gives it away once: what LangGraph goes on with is not kept beside it.

    All of it happens on one event loop.
    """

    def __init__(self) -> None:
        self._kept: tuple[Hashable, T] | None = None
        self._changes = 0

    def forget(self) -> None:
        """Note that something was written, or is about to be."""
        self._kept = None
        self._changes += 1

    async def read(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """Return what was read last under this key, or else read it now."""
        kept, self._kept = self._kept, None
        if kept and kept[0] == key:
            return kept[1]
        before = self._changes
        found = await read()
        if before == self._changes:
            self._kept = key, found
        return found


# --- What a run writes, under its hold: a checkpoint with its tasks' writes, in one statement.
#
# Every operation takes a connection of its own, and is carried out on the loop that these live on.

SPECIAL: Final = frozenset({*WRITES_IDX_MAP, ERROR_SOURCE_NODE})
"""Channels whose writes nothing follows from: errors, questions, replies."""


class FencedSaver(SoundSaver):
    """Writes from any thread and any loop; the saver of one run asserts that it has its thread.

    Synchronous methods raise ``RuntimeError`` on the thread of the connections' loop.
    """

    def __init__(self, database: Database, serde: SerializerProtocol, sealing: Sealing) -> None:
        super().__init__(database.pool, serde, sealing)
        self.database = database
        self.apart = APART
        self.hold: Hold | None = None
        self._pending: PendingWrites | None = None
        self._checkpoint: LastRead[CheckpointTuple | None] | None = None
        self._replayed: LastRead[Mapping[str, DeltaChannelHistory]] | None = None

    def held(self, hold: Hold) -> Self:
        """Return the saver of one run: each of its writes asserts that the run has its thread.

        A write of one that has lost it raises :class:`~daruma.state.errors.HoldLost`.
        """
        own = copy(self)
        own.hold = hold
        own._pending = PendingWrites(own._write, own.apart)
        own._checkpoint, own._replayed = LastRead(), LastRead()
        return own

    async def asettled(self) -> None:
        """Have all stored that this run wrote.

        Raises :class:`~daruma.state.errors.StorageUnavailable` and
        :class:`~daruma.state.errors.HoldLost` for what could not be.
        """
        if self._pending:
            await on(self.loop, self._pending.settled())

    def settled(self) -> None:
        """Do the same, from a thread that can wait."""
        if self._pending:
            run(self._pending.settled(), loop=self.loop)

    async def home(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carry out an operation on the loop that the connections live on, from any loop."""
        return await on(self.loop, self._fenced(operation))

    def home_waiting(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do the same, from a thread that can wait."""
        return run(self._fenced(operation), loop=self.loop)

    async def _fenced(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._pending:
            await self._pending.settled()
        with lost_by(self.hold):
            return await self.database.patiently(operation)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        await on(self.loop, self._put_writes(config, writes, task_id, task_path))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        run(self._put_writes(config, writes, task_id, task_path), loop=self.loop)

    async def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        """Store what a task wrote, or take it over: a run stores it with the next checkpoint."""
        named = config["configurable"]
        place = named["thread_id"], named["checkpoint_ns"], named["checkpoint_id"]
        ends = task_id != NULL_TASK_ID and not SPECIAL & {channel for channel, _ in writes}
        dump = self._dump_writes_together if ends else self._dump_writes
        made = dump(*place, task_id, task_path, writes)
        if all(channel in WRITES_IDX_MAP for channel, _ in writes):
            one_each = {(row[3], row[5]): row for row in made}
            await self.statement(WRITE_OVER, values_of([*one_each.values()]))
        elif self._pending and ends:
            await self._pending.add(made)
        else:
            await self._write(made)

    async def _write(self, made: Sequence[WriteRow]) -> None:
        await self.statement(WRITE, values_of(made))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await on(self.loop, self._put(config, checkpoint, metadata, new_versions))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return run(self._put(config, checkpoint, metadata, new_versions), loop=self.loop)

    async def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        saved = await self._saved(config, checkpoint, metadata, new_versions)

        async def save(writes: Sequence[WriteRow]) -> None:
            values = saved.values(writes)
            try:
                await self.statement(SAVE_AGAIN if saved.again else SAVE, values)
            except UniqueViolation:
                await self.statement(SAVE_AGAIN, values)

        await (self._pending.stored_with(save) if self._pending else save(()))
        named = {"thread_id": saved.thread, "checkpoint_ns": saved.ns, "checkpoint_id": saved.id}
        return RunnableConfig(configurable=named)

    async def statement(self, statement: str, values: Mapping[str, Any]) -> list[DictRow]:
        """Carry out a statement with FENCE in it, from any loop; return its rows."""
        self._forget()
        try:
            with lost_by(self.hold):
                return await self.database.statement(statement, {**values, **fence_of(self.hold)})
        finally:
            self._forget()

    async def transact(self, work: Work[T]) -> T:
        """Do work in one transaction, from any loop; it asserts the hold, where there is one."""

        async def asserted(connection: Connection) -> T:
            if self.hold:
                await connection.execute(ASSERT, [self.hold.thread_id, self.hold.token])
            return await work(connection)

        self._forget()
        try:
            with lost_by(self.hold):
                return await self.database.transact(asserted)
        finally:
            self._forget()

    def _forget(self) -> None:
        for last in (self._checkpoint, self._replayed):
            if last:
                last.forget()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        """Open a cursor; one in a pipeline is for writing, and is a transaction."""
        async with AsyncExitStack() as stack:
            if pipeline:
                self._forget()
                stack.callback(self._forget)
            connection = await stack.enter_async_context(self.database.pool.connection())
            if pipeline:
                await stack.enter_async_context(connection.pipeline())
                await stack.enter_async_context(connection.transaction())
            cursor = connection.cursor(binary=True, row_factory=dict_row)
            await stack.enter_async_context(cursor)
            if pipeline and self.hold:
                await cursor.execute(ASSERT, [self.hold.thread_id, self.hold.token])
            yield cursor
