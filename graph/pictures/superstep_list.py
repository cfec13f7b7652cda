"""Reading supersteps out of any checkpointer, by the list of its checkpoints."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from daruma.graph.pictures.superstep import READ, SENT, Superstep, Written


def supersteps_of(listed: Iterable[CheckpointTuple]) -> list[Superstep]:
    """Return the supersteps of a thread's checkpoints, oldest first."""
    return sorted((_superstep(each) for each in listed), key=lambda each: each.id)


def _superstep(found: CheckpointTuple) -> Superstep:
    named = found.config["configurable"]
    parent = (found.parent_config or {}).get("configurable", {})
    metadata: dict[str, Any] = dict(found.metadata or {})
    writes = found.pending_writes or ()
    return Superstep(
        namespace=named.get("checkpoint_ns", ""),
        id=found.checkpoint["id"],
        parent=parent.get("checkpoint_id"),
        at=datetime.fromisoformat(found.checkpoint["ts"]).timestamp(),
        source=str(metadata.get("source", "")),
        step=metadata.get("step"),
        root=str((metadata.get("parents") or {}).get("", "")),
        updated=tuple(found.checkpoint.get("updated_channels") or ()),
        sent=sum(channel == SENT for _, channel, _ in writes),
        written=tuple(
            Written(task, channel, value)
            for task, channel, value in writes
            if channel in READ and value is not None
        ),
    )
