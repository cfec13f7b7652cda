"""What a checkpoint's row says of itself, and the damage that is told from it (DU-05)."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Final

import orjson
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from daruma.graph.storage._pool import Pool
from daruma.graph.storage._sealing import Place, Sealing
from daruma.state.errors import DamagedState

# --- What a checkpoint's row says of itself, so that damage is told from what was never there.
#
# Stock, a lost blob is read as an empty channel. So each row names the channels that have one, how
# many of its parent's writes its other channels are replayed from, and its parent; a mark over the
# row shows whether it is as it was written. A row from before there were manifests is read as it
# is.

NAME: Final = "daruma"
"""The manifest's key in the stored checkpoint."""

_METADATA: Final = ("source", "step", "parents", "counters_since_delta_snapshot")
"""What of the metadata the engine goes on with; the rest is the callers'."""

_KEYS: Final = {
    "v": int,
    "id": str,
    "ts": str,
    "channel_values": dict,
    "channel_versions": dict,
    "versions_seen": dict,
}
_SCALARS: Final = (str, int, float, bool)
_AS_THEY_ARE: Final = frozenset({str, int, bool, type(None)})

_ORDERED: Final = "o:"
"""Begins a mark over JSON in order, which not Python's own writer alone can write."""

_IN_ORDER: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS

Row = Mapping[str, Any]


def manifest_of(
    checkpoint: Row, metadata: Row, parent: str | None, place: Place, sealing: Sealing
) -> dict[str, Any]:
    """Return the manifest of a checkpoint that is about to be stored.

    ``writes`` names the channels whose writes on the parent are to be counted by the database.
    """
    values = checkpoint["channel_values"]
    inline = {name for name, value in values.items() if is_inline(value)}
    made = {"blobs": sorted(values.keys() - inline), "parent": parent}
    stored = {**checkpoint, "channel_values": as_stored(values)}
    mark = _ORDERED + sealing.mark(_ordered(_marked(stored, metadata, made)), place)
    return {
        **made,
        "writes": dict.fromkeys(replayed(checkpoint["channel_versions"], values), 0),
        "mark": mark,
    }


def replayed(versions: Row, values: Row) -> list[str]:
    """Return the channels that may be replayed from writes: those that were written, and have none.

    A channel that is only empty looks the same.
    """
    return [
        name for name in versions if name not in values and not name.startswith(("branch:", "__"))
    ]


def is_inline(value: Any) -> bool:
    """Whether a channel's value is kept in the checkpoint's row.

    LangGraph puts scalars there. A list with nothing in it, as all sends are after each tool, would
    be a row by itself; a float that is not finite is nothing that Postgres takes as JSON.
    """
    if type(value) is float:
        return isfinite(value)
    return value is None or isinstance(value, _SCALARS) or (type(value) is list and not value)


def as_stored(values: Row) -> dict[str, Any]:
    """Return the channel values that are kept in the checkpoint's row; the others are by name."""
    kept = {name: value for name, value in values.items() if is_inline(value)}
    return kept | {name: True for name, value in values.items() if type(value) is _DeltaSnapshot}


def checked(
    checkpoint: Any, metadata: Any, checkpoint_id: str, place: Place, sealing: Sealing
) -> dict[str, Any]:
    """Return a stored checkpoint without its manifest.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    _refuse_malformed(checkpoint, metadata, checkpoint_id)
    kept = {key: value for key, value in checkpoint.items() if key != NAME}
    manifest = sound(checkpoint.get(NAME), sealing)
    if manifest:
        made = {"blobs": manifest["blobs"], "parent": manifest["parent"]}
        if not _is_mark(manifest["mark"], _marked(kept, metadata, made), place, sealing):
            raise DamagedState("its row is not what was stored")
    return kept


def remade(
    checkpoint: Row, metadata: Row, place: Place, sealing: Sealing, **changes: Any
) -> dict[str, Any]:
    """Return a stored checkpoint that was changed, with a manifest of what it is now.

    ``changes`` are those of the manifest itself. A row of old goes on without one. Raises
    :class:`~daruma.state.errors.DamagedState`.
    """
    kept = {key: value for key, value in checkpoint.items() if key != NAME}
    manifest = sound(checkpoint.get(NAME), sealing)
    if manifest is None:
        return kept
    manifest = manifest | changes
    made = {"blobs": manifest["blobs"], "parent": manifest["parent"]}
    mark = _ORDERED + sealing.mark(_ordered(_marked(kept, metadata, made)), place)
    return kept | {NAME: {**manifest, "mark": mark}}


def sound(manifest: Any, sealing: Sealing) -> dict[str, Any] | None:
    """Return a manifest as it was read, None for a row of old. Raises ``DamagedState``."""
    if manifest is None and not sealing.hides:
        return None
    forms = {"blobs": list, "parent": str | None, "writes": dict, "mark": str}
    if not isinstance(manifest, dict) or not all(
        name in manifest and isinstance(manifest[name], form) for name, form in forms.items()
    ):
        raise DamagedState("its row has lost what it said of itself")
    return manifest


def _refuse_malformed(checkpoint: Any, metadata: Any, checkpoint_id: str) -> None:
    if not isinstance(checkpoint, dict) or not isinstance(metadata, dict):
        raise DamagedState("its row is no checkpoint")
    values = checkpoint.get("channel_values") or {}
    for key, form in _KEYS.items():
        if not isinstance(({**checkpoint, "channel_values": values}).get(key), form):
            raise DamagedState(f"its row lacks {key!r}")
    if checkpoint["id"] != checkpoint_id or not _is_time(checkpoint["ts"]):
        raise DamagedState("its row is not what was stored")


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _marked(checkpoint: Row, metadata: Row, made: Row) -> list[Any]:
    """Return what a mark is made over."""
    values = {"channel_values": _plain(checkpoint.get("channel_values"))}
    known = {key: _plain(metadata.get(key)) for key in _METADATA}
    return [{**checkpoint, **values}, known, made]


def _is_mark(mark: str, over: list[Any], place: Place, sealing: Sealing) -> bool:
    """Whether a mark was made over this; those of old were made over text as Python writes it."""
    if mark.startswith(_ORDERED):
        return mark == _ORDERED + sealing.mark(_ordered(over), place)
    return mark == sealing.mark(json.dumps(over, sort_keys=True), place)


def _ordered(value: list[Any]) -> str:
    """Return the one text of a JSON value, however its keys are ordered and numbers were made."""
    try:
        return orjson.dumps(value, option=_IN_ORDER).decode()
    except orjson.JSONEncodeError:
        return json.dumps(json.loads(json.dumps(value)), sort_keys=True)


def _plain(value: Any) -> Any:
    """Return a value as it is once Postgres has had it: a float may come back as an integer."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):  # also one of a kind of its own, which is read back as a plain one
        return int(value) if value.is_integer() else float(value)
    return value


# --- A damaged checkpoint, named, with the one before it that a thread can go on from.

_BEFORE: Final = """
SELECT checkpoint_id FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = '' AND checkpoint_id < %s
ORDER BY checkpoint_id DESC OFFSET %s LIMIT %s
"""
_TRIED: Final = 100
"""Checkpoints: more than a delta channel's chain has between two of its snapshots."""


@dataclass(frozen=True)
class Where:
    """A checkpoint. ``since`` is the oldest one whose damage it is, such as a lost ancestor."""

    thread: str
    namespace: str
    checkpoint: str
    since: str = ""


class DamagedCheckpoint(DamagedState):
    """Raised for a checkpoint that can not be read."""

    def __init__(self, where: Where, reason: str, advice: str = "") -> None:
        within = f" in {where.namespace!r}" if where.namespace else ""
        named = f"checkpoint {where.checkpoint}{within} of thread {where.thread!r}"
        super().__init__(f"{named}: {reason}{advice}")
        self.where, self.reason = where, reason


class LostAncestor(DamagedState):
    """Raised for what is wrong with an older checkpoint, that another is replayed from."""

    def __init__(self, reason: str, since: str) -> None:
        super().__init__(reason)
        self.since = since


@contextmanager
def damage_at(thread: str, namespace: str, checkpoint: str) -> Iterator[None]:
    """Name the checkpoint in which damage is found."""
    try:
        yield
    except DamagedCheckpoint:
        raise
    except DamagedState as error:
        since = error.since if isinstance(error, LostAncestor) else ""
        raise DamagedCheckpoint(Where(thread, namespace, checkpoint, since), str(error)) from error


async def advised(
    damage: DamagedCheckpoint, pool: Pool, read: Callable[[RunnableConfig], Awaitable[Any]]
) -> DamagedCheckpoint:
    """Return the error with what to do: which checkpoint before it can be read, if any."""
    where = damage.where
    # A member's checkpoints begin anew with another checkpoint of the thread itself, but not with
    # that which started the member.
    limits = [where.thread, where.since or where.checkpoint, int(bool(where.namespace)), _TRIED]
    async with pool.connection() as connection:
        found = await connection.execute(_BEFORE, limits)
        known = [row["checkpoint_id"] for row in await found.fetchall()]
    for earlier in known:
        try:
            await read(_config(where.thread, earlier))
        except DamagedState:
            continue
        return DamagedCheckpoint(where, damage.reason, _going_on(where.thread, earlier))
    return DamagedCheckpoint(where, damage.reason, "; none before it is whole: begin a new thread")


def _config(thread: str, checkpoint: str) -> RunnableConfig:
    names = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint}
    return RunnableConfig(configurable=names)


def _going_on(thread: str, checkpoint: str) -> str:
    return (
        f"; the one before it, {checkpoint}, is whole: go on from there with "
        f"`daruma resume {thread} --from {checkpoint}`, or with that `checkpoint_id` in the config"
    )
