"""Changing a checkpoint's row that is there, so that it still says what it is afterwards."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from psycopg.types.json import Jsonb

from daruma.graph.storage.damage import damage_at
from daruma.graph.storage.manifest import NAME, checked, remade, sound
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.sealing import Sealing

_ROW: Final = """
SELECT checkpoint, metadata FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s FOR UPDATE
"""
_PUT: Final = """
UPDATE checkpoints SET parent_checkpoint_id = %s, checkpoint = %s, metadata = %s
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""
_COUNTERS: Final = "counters_since_delta_snapshot"

At = tuple[str, str, str]
"""A checkpoint: its thread, namespace and id."""


@dataclass(frozen=True)
class Renewal:
    """What becomes of a checkpoint: another parent, and whole copies of channels, already stored.

    It counts no writes of its parent any more: it is not replayed from them.
    """

    parent: str | None
    snapshots: Collection[str]

    async def make(self, connection: Connection, at: At, sealing: Sealing) -> None:
        """Change the row. Raises :class:`~daruma.state.errors.DamagedState` for a damaged one."""
        row = await (await connection.execute(_ROW, at)).fetchone()
        if row is None:
            raise LookupError(f"checkpoint {at[2]} of thread {at[0]!r} is gone")
        with damage_at(*at):
            checked(row["checkpoint"], row["metadata"], at[2], at, sealing)
            metadata = self._metadata(row["metadata"])
            checkpoint = self._checkpoint(row["checkpoint"], metadata, at, sealing)
        await connection.execute(_PUT, [self.parent, Jsonb(checkpoint), Jsonb(metadata), *at])

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        if _COUNTERS not in metadata:
            return metadata
        left = {k: v for k, v in metadata[_COUNTERS].items() if k not in self.snapshots}
        return metadata | {_COUNTERS: left}

    def _checkpoint(
        self, checkpoint: dict[str, Any], metadata: dict[str, Any], at: At, sealing: Sealing
    ) -> dict[str, Any]:
        values = (checkpoint.get("channel_values") or {}) | dict.fromkeys(self.snapshots, True)
        manifest = sound(checkpoint.get(NAME), sealing) or {"blobs": []}
        return remade(
            checkpoint | {"channel_values": values},
            metadata,
            at,
            sealing,
            blobs=sorted({*manifest["blobs"], *self.snapshots}),
            parent=self.parent,
            writes={},
        )
