"""LangGraph's Postgres checkpointer, every value wrapped, every loss noticed (DU-05)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Any, Final, Self, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from psycopg.rows import DictRow

from daruma.graph.storage import _rows as rows
from daruma.graph.storage._history import Traced, refuse_gaps, trace
from daruma.graph.storage._manifest import NAME, as_stored, damage_at, is_inline, manifest_of
from daruma.graph.storage._pool import Pool
from daruma.graph.storage._rows import FLEETING, VALUES, is_small, values_within
from daruma.graph.storage._saving import Saved
from daruma.graph.storage._sealing import Sealing, check_typed_value
from daruma.state.errors import ThreadIdRefused
from daruma.state.serializer import StrictSerializer
from daruma.state.text import unkept_id
from daruma.tools.threads import to_thread

# --- Checkpoints as LangGraph goes on with them.


def checkpoint_tuple(
    row: Mapping[str, Any], values: Mapping[str, Any], writes: Sequence[tuple[str, str, Any]]
) -> CheckpointTuple:
    """Put together a row that was opened, with the values and writes unpacked."""
    found = row["checkpoint"]
    held = {**(found.get("channel_values") or {}), **values}
    checkpoint = cast("Checkpoint", {**found, "channel_values": held})
    parent = row["parent_checkpoint_id"]
    return CheckpointTuple(
        _config(row, row["checkpoint_id"]),
        checkpoint,
        row["metadata"],
        _config(row, parent) if parent else None,
        [*writes],
    )


def copied(found: CheckpointTuple) -> CheckpointTuple:
    """Return a checkpoint that LangGraph may write into; the values in it, it never changes."""
    return found._replace(
        checkpoint=_copied(found.checkpoint),
        metadata=found.metadata.copy(),
        pending_writes=[*(found.pending_writes or ())],
    )


def _copied(checkpoint: Checkpoint) -> Checkpoint:
    return Checkpoint(
        v=checkpoint["v"],
        ts=checkpoint["ts"],
        id=checkpoint["id"],
        channel_values={**checkpoint["channel_values"]},
        channel_versions={**checkpoint["channel_versions"]},
        versions_seen={node: {**seen} for node, seen in checkpoint["versions_seen"].items()},
        updated_channels=checkpoint.get("updated_channels"),
    )


def checked_id(thread_id: Any) -> str:
    """Return a thread's id. Raises :class:`~daruma.state.errors.ThreadIdRefused`."""
    if said := unkept_id(thread_id):
        raise ThreadIdRefused(said)
    return str(thread_id)


def place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, the namespace and the checkpoint that are asked for; None: the newest."""
    named = config["configurable"]
    return checked_id(named["thread_id"]), named.get("checkpoint_ns", ""), get_checkpoint_id(config)


def _config(row: Mapping[str, Any], checkpoint_id: str) -> RunnableConfig:
    return RunnableConfig(
        configurable={
            "thread_id": row["thread_id"],
            "checkpoint_ns": row["checkpoint_ns"],
            "checkpoint_id": checkpoint_id,
        }
    )


# --- Work on much data is done in a thread, so that it holds up nobody else on the loop.

T = TypeVar("T")

_MUCH: Final = 64 * 1024
"""Bytes: unpacked and validated in a few milliseconds. Less is done before a thread wakes."""


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do work on so many bytes, in a thread where that is much."""
    return work() if size < _MUCH else await to_thread(work)


# --- LangGraph's Postgres checkpointer, with every value wrapped and every loss noticed (DU-05).

Check = Callable[[Mapping[str, Any], Sequence[tuple[str, Any]]], None]
"""Raises :class:`~daruma.state.errors.DamagedState` for values and writes of other types."""

_BRANCH: Final = 5
"""Bytes of chance: two branches that go on from one checkpoint write different versions."""


@dataclass(frozen=True)
class _Boxed:
    """A text or number that LangGraph would keep in clear, in the checkpoint's row."""

    value: Any


class SoundSaver(AsyncPostgresSaver):
    """Stores what can be told from damage, and refuses what is damaged, naming the checkpoint."""

    SELECT_SQL = rows.SELECT

    def __init__(self, pool: Pool, serde: SerializerProtocol, sealing: Sealing) -> None:
        of_theirs: Any = pool  # a pool of a kind of connections is no pool of connections to mypy
        super().__init__(of_theirs, serde=serde)
        self.sealing = sealing
        self._check: Check | None = None
        self._passing: Collection[str] = frozenset()

    def expecting(self, check: Check, passing: Collection[str] = frozenset()) -> Self:
        """Return the saver of one kind of graph, whose channels are checked as they are read.

        ``passing`` are those that are kept whole, and that nothing is ever replayed from.
        """
        own = copy(self)
        own._check, own._passing = check, passing
        return own

    def with_allowlist(self, extra_allowlist: Collection[Any]) -> Self:
        """Return a saver over the same data that reads values of these classes, too.

        Another graph may keep its own with it; what is read of the machine is settled (DU-05).
        """
        own = copy(self)
        if self._check is None and isinstance(self.serde, StrictSerializer):
            own.serde = self.serde.reading(extra_allowlist)
        return own

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return LangGraph's, told from those of other branches by half as many signs.

        A checkpoint's row names a version of each channel, and each blob has its own twice.
        """
        number, _, _ = super().get_next_version(current, channel).partition(".")
        return f"{number}.{token_hex(_BRANCH)}"

    async def _saved(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Saved:
        """Return a checkpoint as it is to be stored."""
        named = config["configurable"]
        place = named["thread_id"], named["checkpoint_ns"], checkpoint["id"]
        parent = named.get("checkpoint_id")
        values = checkpoint["channel_values"]
        if self.sealing.hides:
            values = {
                name: _Boxed(value) if value is not None and is_inline(value) else value
                for name, value in values.items()
            }
        kept: dict[str, Any] = {**checkpoint, "channel_values": values}
        kept[NAME] = manifest_of(kept, dict(metadata), parent, place, self.sealing)
        kept["channel_values"] = as_stored(values)
        fleeting = self._fleeting(checkpoint)
        versions = {
            k: v
            for k, v in {**fleeting, **new_versions}.items()
            if k in values and not is_inline(values[k])
        }
        dump = partial(self._dump_blobs, *place[:2], values, versions)
        is_long = any(isinstance(values[name], _DeltaSnapshot) for name in versions)
        blobs = await to_thread(dump) if is_long else dump()
        within = {row[2]: row for row in blobs if row[2] in fleeting and is_small(row[5])}
        if within:
            kept[NAME][VALUES] = values_within(within.values())
            blobs = [row for row in blobs if row[2] not in within]
        known = get_serializable_checkpoint_metadata(config, metadata)
        again = any(row[2] not in new_versions for row in blobs)
        return Saved(*place, parent, kept, known, blobs, again)

    def _fleeting(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Return the versions of values that stand in the checkpoint's row where they are small.

        They are written again though they are not new: the checkpoint before holds its own.
        """
        return {
            name: version
            for name, version in checkpoint["channel_versions"].items()
            if name in FLEETING
            and not self.sealing.hides
            and not isinstance(checkpoint["channel_values"].get(name), _DeltaSnapshot)
        }

    def _dump_blobs(
        self, thread_id: str, checkpoint_ns: str, values: dict[str, Any], versions: ChannelVersions
    ) -> list[tuple[str, str, str, str, str, bytes | None]]:
        plain = {k: v.value if isinstance(v, _Boxed) else v for k, v in values.items()}
        return [
            (
                *row[:4],
                *self.sealing.seal(check_typed_value(row[4], row[5]), rows.blob_place(*row[:4])),
            )
            for row in super()._dump_blobs(thread_id, checkpoint_ns, plain, versions)
        ]

    def _dump_writes(self, *args: Any) -> list[Any]:
        return rows.sealed_writes(super()._dump_writes(*args), self.sealing)

    def _dump_writes_together(self, *args: Any) -> list[Any]:
        """Return the rows of a task that came to its end: it writes once on its checkpoint."""
        return rows.sealed_writes(super()._dump_writes(*args), self.sealing, self._passing)

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        with damage_at(value["thread_id"], value["checkpoint_ns"], value["checkpoint_id"]):
            return await off_loop(rows.size(value), lambda: self._loaded(value))

    def _loaded(self, value: DictRow) -> CheckpointTuple:
        row = rows.opened(value, self.sealing)
        values, writes = (
            self._load_blobs(row["channel_values"]),
            self._load_writes(row["pending_writes"]),
        )
        found = checkpoint_tuple(row, values, writes)
        if self._check:
            pending = [(channel, each) for _, channel, each in writes]
            self._check(found.checkpoint["channel_values"], pending)
        return found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        thread, namespace, target = place_of(config)
        if target is None and (newest := await SoundSaver.aget_tuple(self, config)):
            target = newest.checkpoint["id"]
        place = thread, namespace, target or ""
        with damage_at(*place):
            async with self._cursor() as cursor:
                traced = await trace(cursor, place, channels)
            return await off_loop(traced.size, lambda: self._unpacked(traced))

    def _unpacked(self, traced: Traced) -> Mapping[str, DeltaChannelHistory]:
        opened: Any = traced.opened(self.sealing)
        refuse_gaps(traced.walk(opened), traced.notes, self.sealing)
        found = self._build_delta_channels_writes_history(
            channels=[*traced.chains],
            chain_by_ch={name: [*chain] for name, chain in traced.chains.items()},
            seed_ver_by_ch=traced.seeds,
            seed_inline_by_ch=traced.inline,
            stage2_rows=opened,
        )
        self._check_history(found)
        return found

    def _check_history(self, found: Mapping[str, DeltaChannelHistory]) -> None:
        if not self._check:
            return
        for channel, history in found.items():
            held = {channel: history["seed"]} if "seed" in history else {}
            self._check(held, [(channel, value) for _, _, value in history["writes"]])
