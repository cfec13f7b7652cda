"""Our checkpointer: what a run reads and writes, from any thread and any loop, under its hold.

LangGraph's own for Postgres belongs to the loop it was made on, runs one operation at a time
(langgraph#7259), and reads a lost value as an empty channel.
"""

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from copy import copy
from secrets import token_hex
from typing import Any, Final, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import INTERRUPT
from psycopg import AsyncCursor
from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow, dict_row

from daruma.graph.storage._database import Connection, Database, Work
from daruma.graph.storage._ledgers import Hold
from daruma.graph.storage._rows import (
    BEFORE,
    SELECT,
    DamagedCheckpoint,
    History,
    WriteRow,
    blob_row,
    config_of,
    damage_at,
    inline_values,
    jsonb,
    manifested,
    open_checkpoint,
    read_history,
    replayed,
    size_of,
    write_rows,
)
from daruma.graph.storage._saving import (
    APART,
    ASK,
    ASSERT,
    SAVE,
    SAVE_AGAIN,
    WRITE,
    WRITE_OVER,
    PendingWrites,
    PostgresSteering,
    fence_of,
    lost_by,
    row_values,
    told_in,
)
from daruma.graph.storage._sealing import Sealing
from daruma.graph.sync import on, run
from daruma.state.errors import DamagedState, ThreadIdRefused
from daruma.state.serializer import DeltaSnapshot, StrictSerializer
from daruma.state.text import unkept_id
from daruma.tools.threads import to_thread

T = TypeVar("T")

Check = Callable[[Mapping[str, Any], Sequence[tuple[str, Any]]], None]
"""Raises :class:`~daruma.state.errors.DamagedState` for values and writes of other types."""

_MUCH: Final = 64 * 1024
"""Bytes: unpacked and validated in a few milliseconds. Less is done before a thread wakes."""

_NOT_THE_END: Final = frozenset({*WRITES_IDX_MAP, "__error_source_node__"})
"""Channels whose writes nothing follows from: errors, questions, replies."""

_NO_TASK: Final = "00000000-0000-0000-0000-000000000000"
"""LangGraph's id for writes of no task, such as a command's."""

_OF_A_RUN: Final = "~__pregel_"
"""Begins the path of a task that a graph runs, which comes to its end once.

What is edited by hand may be written to the same task again, and more of it.
"""

_BRANCH: Final = 5
"""Bytes of chance: two branches that go on from one checkpoint write different versions."""


def checked_id(thread_id: Any) -> str:
    """Return a thread's id. Raises :class:`~daruma.state.errors.ThreadIdRefused`."""
    if said := unkept_id(thread_id):
        raise ThreadIdRefused(said)
    return str(thread_id)


def _asked(place: Sequence[str], writes: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return what ASK takes for the questions that a task of a thread's own graph asks, if any."""
    asked = [each for channel, value in writes if channel == INTERRUPT for each in value]
    if not asked or place[1]:  # those of a graph within it come up to its own
        return {}
    from daruma.state.interrupts import kind_of, question_id  # not read to list threads (FA-13)

    rows = [[each.id, question_id(each), kind_of(each.value)] for each in asked]
    thread, _, checkpoint, task, _ = place
    return {"thread": thread, "checkpoint": checkpoint, "task": task, "asked": jsonb(rows)}


def _place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    named = config["configurable"]
    return checked_id(named["thread_id"]), named.get("checkpoint_ns", ""), get_checkpoint_id(config)


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes, in a thread where that is much: it holds up nobody on the loop."""
    return work() if size < _MUCH else await to_thread(work)


class CheckpointSaver(BaseCheckpointSaver[str]):
    """Stores what can be told from damage; what is damaged it refuses, naming the checkpoint.

    Every operation takes a connection of its own, and is carried out on the loop that these live
    on. Synchronous methods raise ``RuntimeError`` on the thread of that loop; reading raises
    :class:`~daruma.state.errors.DamagedState`, naming the checkpoint, and the one before it. The
    saver of one run asserts with each write that the run has its thread.
    """

    def __init__(self, database: Database, serde: SerializerProtocol, sealing: Sealing) -> None:
        super().__init__(serde=serde)
        self.database = database
        self.loop = database.loop
        self.sealing = sealing
        self.apart = APART
        self.hold: Hold | None = None
        self._pending: PendingWrites | None = None
        self.steering = PostgresSteering(database, sealing)
        self._check: Check | None = None
        self._newest: dict[str, str] = {}
        self._looked_at: tuple[object, Mapping[str, DeltaChannelHistory]] = None, {}

    def expecting(self, check: Check) -> Self:
        """Return the saver of one kind of graph, whose channels are checked as they are read."""
        own = copy(self)
        own._check = check
        return own

    def with_allowlist(self, extra_allowlist: Collection[Any]) -> Self:
        """Return a saver over the same data that reads values of these classes, too.

        Another graph may keep its own with it; what is read of the machine is settled (DU-05).
        """
        own = copy(self)
        if self._check is None and isinstance(self.serde, StrictSerializer):
            own.serde = self.serde.reading(extra_allowlist)
        return own

    def looking(self) -> Self:
        """Return the saver for who only looks: questions are read without LangGraph (FA-13)."""
        own = copy(self)
        if isinstance(self.serde, StrictSerializer):
            own.serde = self.serde.looking()
        return own

    def held(self, hold: Hold) -> Self:
        """Return the saver of one run: each of its writes asserts that the run has its thread.

        A write of one that has lost it raises :class:`~daruma.state.errors.HoldLost`.
        """
        own = copy(self)
        own.hold = hold
        own._pending = PendingWrites(own._write, own.apart)
        own.steering = PostgresSteering(own.database, own.sealing, hold)
        return own

    def going_on_from(self, thread_id: str, checkpoint_id: str) -> Self:
        """Return a saver to which an earlier checkpoint is a thread's newest one, until it writes.

        So a thread goes on as if the later ones, which are damaged, had never been written: what
        the tasks of that checkpoint had done by then stays done.
        """
        own = copy(self)
        own._newest = {thread_id: checkpoint_id}
        return own

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002
        """Return the version after one: of a fixed width, as LangGraph compares them as texts."""
        number = int(current.partition(".")[0]) + 1 if current else 1
        return f"{number:032}.{token_hex(_BRANCH)}"

    # --- Where operations are carried out, and what they are fenced by.

    async def home(self, operation: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Carry out an operation on the loop that the connections live on, from any loop."""

        async def fenced() -> T:
            if self._pending:
                await self._pending.settled()
            with lost_by(self.hold):
                return await self.database.patiently(operation)

        return await on(self.loop, fenced())

    async def statement(self, statement: str, values: Mapping[str, Any]) -> list[DictRow]:
        """Carry out a statement with FENCE in it, from any loop; return its rows."""
        with lost_by(self.hold):
            return await self.database.statement(statement, {**values, **fence_of(self.hold)})

    async def transact(self, work: Work[T]) -> T:
        """Do work in one transaction, from any loop; it asserts the hold, where there is one."""

        async def asserted(connection: Connection) -> T:
            if self.hold:
                await connection.execute(ASSERT, [self.hold.thread_id, self.hold.token])
            return await work(connection)

        with lost_by(self.hold):
            return await self.database.transact(asserted)

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncCursor[DictRow]]:
        """Open a cursor on a connection of its own; only on the loop of the connections."""
        async with (
            self.database.pool.connection() as connection,
            connection.cursor(binary=True, row_factory=dict_row) as cursor,
        ):
            yield cursor

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

    # --- Writing.

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
        place = (
            *(str(named[name]) for name in ("thread_id", "checkpoint_ns", "checkpoint_id")),
            task_id,
            task_path,
        )
        ends = task_id != _NO_TASK and not _NOT_THE_END & {channel for channel, _ in writes}
        together = ends and task_path.startswith(_OF_A_RUN)
        made = write_rows(place, writes, self.serde, self.sealing, together=together)
        self.steering.told |= told_in(writes)
        if asked := _asked(place, writes):
            await self.statement(ASK, {**row_values("written", made), **asked})
        elif all(channel in WRITES_IDX_MAP for channel, _ in writes):
            await self.statement(WRITE_OVER, row_values("written", made))
        elif self._pending and ends:
            await self._pending.add(made)
        else:
            await self._write(made)

    async def _write(self, made: Sequence[WriteRow]) -> None:
        await self.statement(WRITE, row_values("written", made))

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
        named = config["configurable"]
        place = str(named["thread_id"]), str(named["checkpoint_ns"]), checkpoint["id"]
        parent, held = named.get("checkpoint_id"), checkpoint["channel_values"]
        kept = manifested({**checkpoint}, {**metadata}, parent, place, self.sealing)
        inline = inline_values(held, self.sealing)
        new = {k: v for k, v in new_versions.items() if k in held and k not in inline}

        def dump() -> dict[str, Any]:
            at = [((*place[:2], name, str(version)), held[name]) for name, version in new.items()]
            rows = [blob_row(where, each, self.serde, self.sealing) for where, each in at]
            return row_values("valued", rows)

        is_long = any(type(held[name]) is DeltaSnapshot for name in new)
        values = {
            "thread": place[0],
            "ns": place[1],
            "id": place[2],
            "parent": parent,
            "checkpoint": jsonb(kept),
            "metadata": jsonb(get_serializable_checkpoint_metadata(config, metadata)),
            **(await to_thread(dump) if is_long else dump()),
        }

        async def save(writes: Sequence[WriteRow]) -> None:
            told = [*self.steering.told]
            given = {**values, **row_values("written", writes), "told": told}
            try:
                rows = await self.statement(SAVE_AGAIN if told else SAVE, given)
            except UniqueViolation:
                rows = await self.statement(SAVE_AGAIN, given)
            self.steering.stored(told, rows[0])

        await (self._pending.stored_with(save) if self._pending else save(()))
        if not place[1]:
            self._newest.pop(place[0], None)
        return config_of(*place)

    # --- Reading.

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.home(lambda: self._advising(lambda: self._get(config)))

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return run(self.aget_tuple(config), loop=self.loop)

    async def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, namespace, named = _place_of(config)
        if not namespace and not named:
            named = self._newest.get(thread)
        where = "WHERE thread_id = %s AND checkpoint_ns = %s"
        if named:
            found = await self._read(f"{where} AND checkpoint_id = %s", [thread, namespace, named])
        else:
            newest = f"{where} ORDER BY checkpoint_id DESC LIMIT 1"
            found = await self._read(newest, [thread, namespace])
        return found[0] if found else None

    async def alist(
        self, config: RunnableConfig | None, **search: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for found in await self._at_once(config, **search):
            yield found

    def list(self, config: RunnableConfig | None, **search: Any) -> Iterator[CheckpointTuple]:
        yield from run(self._at_once(config, **search), loop=self.loop)

    async def _at_once(
        self, config: RunnableConfig | None, **search: Any
    ) -> Sequence[CheckpointTuple]:
        return await self.home(lambda: self._advising(lambda: self._listed(config, **search)))

    async def _listed(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Sequence[CheckpointTuple]:
        wanted: dict[str, Any] = {}
        named = config["configurable"] if config else {}
        if "thread_id" in named:
            wanted["thread_id = %s"] = checked_id(named["thread_id"])
        if named.get("checkpoint_ns") is not None:
            wanted["checkpoint_ns = %s"] = named["checkpoint_ns"]
        if named.get("checkpoint_id"):
            wanted["checkpoint_id = %s"] = named["checkpoint_id"]
        if filter:
            wanted["metadata @> %s"] = jsonb(filter)
        if before:
            wanted["checkpoint_id < %s"] = get_checkpoint_id(before)
        where = f"WHERE {' AND '.join(wanted)}" if wanted else ""
        values = [*wanted.values(), limit]
        return await self._read(f"{where} ORDER BY checkpoint_id DESC LIMIT %s", values)

    async def _read(self, where: str, values: Sequence[Any]) -> Sequence[CheckpointTuple]:
        async with self.reading() as cursor:
            await cursor.execute(f"{SELECT} {where}".encode(), values)
            rows = await cursor.fetchall()
        found = []
        for row in rows:
            with damage_at(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]):
                found.append(await off_loop(size_of(row), lambda row=row: self._opened(row)))  # type: ignore[misc]
        return found

    def _opened(self, row: DictRow) -> CheckpointTuple:
        found = open_checkpoint(row, self.serde, self.sealing)
        if self._check:
            pending = [(channel, each) for _, channel, each in found.pending_writes or ()]
            self._check(found.checkpoint["channel_values"], pending)
        return found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self.home(lambda: self._advising(lambda: self._history(config, channels)))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return run(
            self.aget_delta_channel_history(config=config, channels=channels), loop=self.loop
        )

    async def _history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        thread, namespace, target = _place_of(config)
        if target is None and (newest := await self._get(config)):
            target = newest.checkpoint["id"]
        place = thread, namespace, target or ""
        if self._looked_at[0] == (place, {*channels}):  # a run looks at it, then begins with it
            (_, found), self._looked_at = self._looked_at, (None, {})
            return found
        with damage_at(*place):
            async with self.reading() as cursor:
                history = await read_history(cursor, place, channels)
            found = await off_loop(history.size, lambda: self._replayed(history))
        if self.hold:
            self._looked_at = (place, {*channels}), found
        return found

    def _replayed(self, history: History) -> Mapping[str, DeltaChannelHistory]:
        found = history.replayed(self.serde, self.sealing)
        if self._check:
            for channel, each in found.items():
                held = {channel: each["seed"]} if "seed" in each else {}
                self._check(held, [(channel, value) for _, _, value in each["writes"]])
        return found

    async def _advising(self, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Read; say of what is damaged which checkpoint before it a thread can go on from."""
        try:
            return await read()
        except DamagedCheckpoint as damage:
            async with self.reading() as cursor:
                await cursor.execute(BEFORE, damage.before)
                earlier = [row["checkpoint_id"] for row in await cursor.fetchall()]
            for each in earlier:
                config = config_of(damage.thread, "", each)
                try:  # to read it whole, with the histories of all channels that may have one
                    if found := await self._get(config):
                        kept = found.checkpoint
                        channels = replayed(kept["channel_versions"], kept["channel_values"])
                        await self._history(config, channels)
                except DamagedState:
                    continue
                raise damage.advising(each) from damage
            raise damage.advising(None) from damage
