"""LangGraph's Postgres checkpointer, with every value wrapped and every loss noticed (DU-05)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.rows import DictRow

from daruma.graph.storage import rows
from daruma.graph.storage.chain import NOTES, Walk, refuse_gaps
from daruma.graph.storage.damage import damage_at
from daruma.graph.storage.manifest import NAME, is_inline, manifest_of
from daruma.graph.storage.pool import Pool
from daruma.graph.storage.sealing import Sealing, typed

Check = Callable[[Mapping[str, Any], Sequence[tuple[str, Any]]], None]
"""Raises :class:`~daruma.state.storage.DamagedState` for values and writes of other types."""


@dataclass(frozen=True)
class _Boxed:
    """A text or number that LangGraph would keep in clear, in the checkpoint's row."""

    value: Any


class SoundSaver(AsyncPostgresSaver):
    """Stores what can be told from damage, and refuses what is damaged, naming the checkpoint."""

    SELECT_SQL = rows.SELECT
    UPSERT_CHECKPOINTS_SQL = rows.UPSERT

    def __init__(self, pool: Pool, serde: SerializerProtocol, sealing: Sealing) -> None:
        super().__init__(pool, serde=serde)
        self.sealing = sealing
        self._check: Check | None = None
        self._walk = Walk("", "")

    def expecting(self, check: Check) -> Self:
        """Return the saver of one kind of graph, whose channels are checked as they are read."""
        own = copy(self)
        own._check = check
        return own

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        named = config["configurable"]
        place = named["thread_id"], named["checkpoint_ns"], checkpoint["id"]
        values = checkpoint["channel_values"]
        if self.sealing.hides:
            values = {
                name: _Boxed(value) if value is not None and is_inline(value) else value
                for name, value in values.items()
            }
        kept: Any = {**checkpoint, "channel_values": values}
        parent = named.get("checkpoint_id")
        kept[NAME] = manifest_of(kept, dict(metadata), parent, place, self.sealing)
        return await super().aput(config, kept, metadata, new_versions)

    def _dump_blobs(
        self, thread_id: str, checkpoint_ns: str, values: dict[str, Any], versions: ChannelVersions
    ) -> list[tuple[str, str, str, str, str, bytes | None]]:
        plain = {k: v.value if isinstance(v, _Boxed) else v for k, v in values.items()}
        return [
            (*row[:4], *self.sealing.seal(typed(row[4], row[5]), rows.blob_place(*row[:4])))
            for row in super()._dump_blobs(thread_id, checkpoint_ns, plain, versions)
        ]

    def _dump_writes(self, *args: Any) -> list[Any]:
        return rows.sealed_writes(super()._dump_writes(*args), self.sealing)

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        with damage_at(value["thread_id"], value["checkpoint_ns"], value["checkpoint_id"]):
            row = await asyncio.to_thread(rows.opened, value, self.sealing)
            found = await super()._load_checkpoint_tuple(row)
            if self._check:
                writes = [(channel, each) for _, channel, each in found.pending_writes or ()]
                self._check(found.checkpoint["channel_values"], writes)
            return found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        named = config["configurable"]
        own = copy(self)
        own._walk = walk = Walk(named["thread_id"], named.get("checkpoint_ns", ""))
        target = str(named.get("checkpoint_id"))
        with damage_at(walk.thread, walk.namespace, target):
            found = await AsyncPostgresSaver.aget_delta_channel_history(
                own, config=config, channels=channels
            )
            if walk.target:
                async with self._cursor() as cursor:
                    known = [walk.thread, walk.namespace, walk.checkpoints]
                    await cursor.execute(NOTES, known)
                    notes = {row["checkpoint_id"]: row for row in await cursor.fetchall()}
                refuse_gaps(walk, notes, self.sealing)
            self._check_history(found)
        return found

    def _check_history(self, found: Mapping[str, DeltaChannelHistory]) -> None:
        if not self._check:
            return
        for channel, history in found.items():
            held = {channel: history["seed"]} if "seed" in history else {}
            self._check(held, [(channel, value) for _, _, value in history["writes"]])

    def _try_advance_walks(self, target_id: str, *found: Any) -> None:  # type: ignore[override]
        AsyncPostgresSaver._try_advance_walks(target_id, *found)
        chains, seeded, cursors = found[5], found[9], found[8]
        if target_id in found[1]:
            self._walk.target = target_id
            self._walk.chains = chains
            self._walk.open = {name: at for name, at in cursors.items() if name not in seeded}

    def _build_delta_channels_writes_history(
        self, *, stage2_rows: Sequence[Any], **found: Any
    ) -> dict[str, DeltaChannelHistory]:
        opened = [self._opened(row) for row in stage2_rows]
        versions = found["seed_ver_by_ch"]
        chains = found["chain_by_ch"]
        self._walk.snapshots = frozenset(
            (row["channel"], chains[row["channel"]][-1])
            for row in opened
            if row["_kind"] == "b" and row["version"] == versions[row["channel"]]
        )
        self._walk.writes = Counter(
            (row["channel"], row["checkpoint_id"]) for row in opened if row["_kind"] == "w"
        )
        return super()._build_delta_channels_writes_history(stage2_rows=opened, **found)

    def _opened(self, row: Mapping[str, Any]) -> Any:
        place = self._walk.thread, self._walk.namespace
        value = typed(row["type"], row["blob"])
        if row["_kind"] == "b":
            at = rows.blob_place(*place, row["channel"], row["version"])
            kind, payload = self.sealing.open(value, at)
        else:
            names = ("checkpoint_id", "task_id", "task_path", "idx", "channel")
            at = [*place, *(str(row[name]) for name in names)]
            kind, payload, _ = rows.open_write(value, at, self.sealing)
        return {**row, "type": kind, "blob": payload}
