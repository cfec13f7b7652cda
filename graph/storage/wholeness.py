"""Making a checkpoint stand on its own: what its channels hold, without the history before it.

A delta channel is kept as writes; its value is found by going back to the last whole copy. Before
that history is deleted, the copy is put into the checkpoint that stays (LangGraph's saver refuses).
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from daruma.graph.storage.pool import Connection
from daruma.graph.storage.renewal import Renewal
from daruma.state.channels import DELTA
from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from daruma.graph.storage.saver import PostgresSaver

_COUNTERS: Final = "counters_since_delta_snapshot"
_PUT: Final = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (thread_id, checkpoint_ns, channel, version)
DO UPDATE SET type = excluded.type, blob = excluded.blob
"""


class NotThinned(DarumaError):
    """Raised for a thread of another graph, whose channels nobody here can read."""


class Whole(NamedTuple):
    """The values that a checkpoint lacks to stand on its own."""

    config: RunnableConfig
    versions: Mapping[str, Any]
    values: Mapping[str, Any]

    async def put(self, saver: "PostgresSaver", connection: Connection, parent: str | None) -> None:
        """Write them into the checkpoint, which follows on ``parent`` from now on."""
        named = self.config["configurable"]
        thread, ns = named["thread_id"], named["checkpoint_ns"]
        copies = {name: _DeltaSnapshot(value) for name, value in self.values.items()}
        for row in saver._dump_blobs(thread, ns, copies, {k: self.versions[k] for k in copies}):
            await connection.execute(_PUT, row)
        at = thread, ns, named["checkpoint_id"]
        await Renewal(parent, copies.keys()).make(connection, at, saver.sealing)


async def whole(saver: "PostgresSaver", thread_id: str, ns: str, checkpoint_id: str) -> Whole:
    """Read what a checkpoint lacks. Raises :class:`NotThinned`, and what reading it raises."""
    named = {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    found = await saver.aget_tuple(RunnableConfig(configurable=named))
    if found is None:
        raise LookupError(f"checkpoint {checkpoint_id} of thread {thread_id!r} is gone")
    values = await channel_values(saver, found, _lacking(found))
    return Whole(found.config, found.checkpoint["channel_versions"], values)


async def channel_values(
    saver: "PostgresSaver", found: CheckpointTuple, channels: list[str]
) -> dict[str, Any]:
    """Return what delta channels hold at a checkpoint, read from its history."""
    history = await saver.aget_delta_channel_history(config=found.config, channels=channels)
    values = {}
    for name in channels:
        channel = DELTA[name].from_checkpoint(history[name].get("seed", []))
        channel.replay_writes(history[name]["writes"])
        values[name] = channel.get()
    return values


def _lacking(found: CheckpointTuple) -> list[str]:
    counted: Mapping[str, Any] = found.metadata.get(_COUNTERS) or {}
    checkpoint = found.checkpoint
    lacking = [
        name
        for name in sorted({*DELTA, *counted})
        if name in checkpoint["channel_versions"] and name not in checkpoint["channel_values"]
    ]
    if unknown := [name for name in lacking if name not in DELTA]:
        raise NotThinned(
            f"thread {found.config['configurable']['thread_id']!r} keeps {unknown[0]!r} as Daruma "
            "does not: only the graph that wrote it can thin it; `delete` works"
        )
    return lacking
