"""Checkpoints as LangGraph goes on with them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, get_checkpoint_id
from langgraph.pregel._checkpoint import copy_checkpoint


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
        checkpoint=copy_checkpoint(found.checkpoint),
        metadata=found.metadata.copy(),
        pending_writes=[*(found.pending_writes or ())],
    )


def place_of(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, the namespace and the checkpoint that are asked for; None: the newest."""
    named = config["configurable"]
    return named["thread_id"], named.get("checkpoint_ns", ""), get_checkpoint_id(config)


def _config(row: Mapping[str, Any], checkpoint_id: str) -> RunnableConfig:
    return RunnableConfig(
        configurable={
            "thread_id": row["thread_id"],
            "checkpoint_ns": row["checkpoint_ns"],
            "checkpoint_id": checkpoint_id,
        }
    )
