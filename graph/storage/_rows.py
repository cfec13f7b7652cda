"""Checkpoints and writes as rows: packed, wrapped, and told from damage as they are read (DU-05);
and the history that delta channels are replayed from, and whether that is whole (DU-08).

Stock, a lost value is read as an empty channel. So each checkpoint's row has a manifest: which
channels have a value in another row, how many of its parent's writes its other channels are
replayed from, and its parent; a mark over the row shows whether it is as it was written. What one
task wrote is one row.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any, Final, NamedTuple

import orjson
import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    CheckpointTuple,
    DeltaChannelHistory,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from daruma.graph.storage._sealing import Place, Sealing, check_typed_value
from daruma.state.errors import DamagedState
from daruma.state.serializer import DeltaSnapshot

Row = Mapping[str, Any]


# --- JSON for rows, by a writer several times as fast as Python's own.
#
# It is as strict about types, but for UUIDs and enumerations, of which it writes the values.

_AS_STRICT: Final = (
    orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
) | orjson.OPT_PASSTHROUGH_SUBCLASS
_IN_ORDER: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def json_text(value: Any) -> bytes:
    """Return a value as JSON; Python's own writes what only that can, such as huge numbers.

    A float that is not finite becomes null: Postgres has no such number.
    """
    try:
        return orjson.dumps(value, option=_AS_STRICT)
    except orjson.JSONEncodeError:
        return json.dumps(value).encode()


def jsonb(value: Any) -> Jsonb:
    """Return a value as a parameter of a statement."""
    return Jsonb(value, json_text)


# --- What a checkpoint's row says of itself.

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
_MANIFEST: Final = {"blobs": list, "parent": str | None, "writes": dict, "mark": str}
_AS_THEY_ARE: Final = frozenset({str, int, bool, type(None)})


def inline_values(values: Row, sealing: Sealing) -> dict[str, Any]:
    """Return the values that are kept in the checkpoint's own row: scalars and empty lists.

    A float that is not finite is nothing that Postgres takes as JSON. Where values are hidden,
    only None is kept there.
    """
    return {
        name: value
        for name, value in values.items()
        if value is None or (not sealing.hides and _is_inline(value))
    }


def _is_inline(value: Any) -> bool:
    if type(value) is float:
        return isfinite(value)
    return isinstance(value, str | int | float | bool) or (type(value) is list and not value)


def manifested(
    checkpoint: Row, metadata: Row, parent: str | None, place: Place, sealing: Sealing
) -> dict[str, Any]:
    """Return a checkpoint as its row holds it, with its manifest.

    ``writes`` names the channels whose writes on the parent are to be counted by the database:
    those that were written, and have no value.
    """
    values = checkpoint["channel_values"]
    inline = inline_values(values, sealing)
    copies = {name: True for name, value in values.items() if type(value) is DeltaSnapshot}
    writes = dict.fromkeys(replayed(checkpoint["channel_versions"], values), 0)
    manifest = {"blobs": sorted(values.keys() - inline), "parent": parent, "writes": writes}
    return marked(
        {**checkpoint, "channel_values": inline | copies}, metadata, manifest, place, sealing
    )


def replayed(versions: Row, values: Row) -> list[str]:
    """Return the channels that may be replayed from writes: those that were written, and have none.

    A channel that is only empty looks the same.
    """
    return [
        name for name in versions if name not in values and not name.startswith(("branch:", "__"))
    ]


def marked(
    checkpoint: Row, metadata: Row, manifest: Row, place: Place, sealing: Sealing
) -> dict[str, Any]:
    """Return a stored checkpoint with a manifest that is marked as it is now."""
    kept = {key: value for key, value in checkpoint.items() if key != NAME}
    return kept | {NAME: {**manifest, "mark": _mark(kept, metadata, manifest, place, sealing)}}


def checked(
    checkpoint: Any, metadata: Any, checkpoint_id: str, place: Place, sealing: Sealing
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a stored checkpoint and its manifest.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    if not isinstance(checkpoint, dict) or not isinstance(metadata, dict):
        raise DamagedState("its row is no checkpoint")
    values = checkpoint.get("channel_values") or {}
    for key, form in _KEYS.items():
        if not isinstance(({**checkpoint, "channel_values": values}).get(key), form):
            raise DamagedState(f"its row lacks {key!r}")
    try:
        datetime.fromisoformat(checkpoint["ts"])
    except ValueError:
        raise DamagedState("its row is not what was stored") from None
    if checkpoint["id"] != checkpoint_id:
        raise DamagedState("its row is not what was stored")
    manifest = sound(checkpoint.get(NAME))
    kept = {key: value for key, value in checkpoint.items() if key != NAME}
    if manifest["mark"] != _mark(kept, metadata, manifest, place, sealing):
        raise DamagedState("its row is not what was stored")
    return kept, manifest


def sound(manifest: Any) -> dict[str, Any]:
    """Return a manifest as it was read. Raises ``DamagedState``."""
    if not isinstance(manifest, dict) or not all(
        name in manifest and isinstance(manifest[name], form) for name, form in _MANIFEST.items()
    ):
        raise DamagedState("its row has lost what it said of itself")
    return manifest


def _mark(checkpoint: Row, metadata: Row, manifest: Row, place: Place, sealing: Sealing) -> str:
    values = {"channel_values": _plain(checkpoint.get("channel_values"))}
    known = {key: _plain(metadata.get(key)) for key in _METADATA}
    over = [{**checkpoint, **values}, known, manifest["blobs"], manifest["parent"]]
    try:
        text = orjson.dumps(over, option=_IN_ORDER).decode()
    except orjson.JSONEncodeError:
        text = json.dumps(json.loads(json.dumps(over)), sort_keys=True)
    return sealing.mark(text, place)


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


# --- Values of channels, each a row.

BlobRow = tuple[Any, ...]
"""Thread, namespace, channel, version, kind and value of a channel."""


def blob_row(
    place: Sequence[str], value: Any, serde: SerializerProtocol, sealing: Sealing
) -> BlobRow:
    """Return the row of a value; its place is the thread, namespace, channel and version."""
    return (*place, *sealing.seal(serde.dumps_typed(value), place))


# --- Writes: what a task that came to its end wrote is one row; all else has a row each.
#
# Postgres has no use for a row, a key in the index and an entry in its log for each write.

WriteRow = tuple[Any, ...]
"""Thread, namespace, checkpoint, task, path, slot, channels, kind and value of some writes."""

WRITE_PLACE: Final = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "slot")
"""The columns, behind the thread, that a row of writes is sealed in the place of."""

_WRITES: Final = "writes"


class Write(NamedTuple):
    """One write: the channel, and the value's kind and bytes."""

    channel: str
    kind: str
    payload: bytes


def write_rows(
    place: Sequence[str],
    writes: Sequence[tuple[str, Any]],
    serde: SerializerProtocol,
    sealing: Sealing,
    *,
    together: bool,
) -> list[WriteRow]:
    """Return the rows of a task's writes, each of which tells how many there are of them.

    Those in the slots of special channels are not counted: they are written over one by one. The
    place is the thread, namespace, checkpoint, task and path.
    """
    packed = [(channel, *serde.dumps_typed(value)) for channel, value in writes]
    whole = sum(channel not in WRITES_IDX_MAP for channel, _, _ in packed)
    slots = (
        {0: packed}
        if together
        else {WRITES_IDX_MAP.get(each[0], slot): [each] for slot, each in enumerate(packed)}
    )
    return [
        (
            *place,
            slot,
            [channel for channel, _, _ in each],
            *sealing.seal((_WRITES, ormsgpack.packb([whole, each])), (*place, str(slot))),
        )
        for slot, each in slots.items()
    ]


def open_writes(thread: str, row: Row, sealing: Sealing) -> tuple[int, list[Write]]:
    """Return how many writes the task made together, and those that are in its row.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    place = [thread, *(str(row[name]) for name in WRITE_PLACE)]
    kind, payload = sealing.open(check_typed_value(row["type"], row["blob"]), place)
    try:
        whole, found = ormsgpack.unpackb(payload) if kind == _WRITES else (0, ())
        writes = [Write(*each) for each in found]
    except (TypeError, ValueError):
        writes = []
    if not writes or [each.channel for each in writes] != row["channels"]:
        raise DamagedState("the writes of a task are not what was stored")
    return whole, writes


# --- A checkpoint with its values and the writes that wait on it, read as LangGraph goes on with.

_WHOLE: Final = """
jsonb_typeof(checkpoint) = 'object' AND jsonb_typeof(checkpoint -> 'channel_versions') = 'object'
"""
SELECT: Final = f"""
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata,
    (
        SELECT array_agg(ARRAY[convert_to(own.channel, 'UTF8'), own.type::bytea, own.blob])
        FROM jsonb_each_text(
            CASE WHEN {_WHOLE} THEN checkpoint -> 'channel_versions' ELSE '{{}}' END
        ) AS versions
        JOIN daruma_blobs AS own
            ON own.thread_id = daruma_checkpoints.thread_id
            AND own.checkpoint_ns = daruma_checkpoints.checkpoint_ns
            AND own.channel = versions.key AND own.version = versions.value
    ) AS blobs,
    (
        SELECT array_agg(ARRAY[
            convert_to(task_id, 'UTF8'), convert_to(task_path, 'UTF8'), slot::text::bytea,
            convert_to(array_to_json(channels)::text, 'UTF8'), type::bytea, blob
        ])
        FROM daruma_writes AS own
        WHERE own.thread_id = daruma_checkpoints.thread_id
            AND own.checkpoint_ns = daruma_checkpoints.checkpoint_ns
            AND own.checkpoint_id = daruma_checkpoints.checkpoint_id
    ) AS writes
FROM daruma_checkpoints
"""  # noqa: S608 - of constants alone


def size_of(row: Row) -> int:
    """Return how many bytes a row has that are to be unpacked."""
    found = (*(row["blobs"] or ()), *(row["writes"] or ()))
    return sum(len(part or b"") for each in found for part in each)


def open_checkpoint(row: Row, serde: SerializerProtocol, sealing: Sealing) -> CheckpointTuple:
    """Return a checkpoint with its values and writes.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    place = row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]
    checkpoint, manifest = checked(row["checkpoint"], row["metadata"], place[2], place, sealing)
    values = dict(checkpoint.get("channel_values") or {})
    found = set[str]()
    for channel, kind, payload in row["blobs"] or ():
        name = _text(channel)
        at = (*place[:2], name, checkpoint["channel_versions"][name])
        value = sealing.open(check_typed_value(_text(kind), payload), at)
        values[name] = serde.loads_typed(value)
        found.add(name)
    for name in manifest["blobs"]:
        if name not in found:
            raise DamagedState(f"the value of channel {name!r} is lost")
    parent = row["parent_checkpoint_id"]
    whole: Any = {**checkpoint, "channel_values": values}
    return CheckpointTuple(
        config_of(*place),
        whole,
        row["metadata"],
        config_of(*place[:2], parent) if parent else None,
        [
            (task, each.channel, serde.loads_typed((each.kind, each.payload)))
            for task, each in _writes(row, place, sealing)
        ],
    )


def _writes(row: Row, place: Place, sealing: Sealing) -> list[tuple[str, Write]]:
    at = {"checkpoint_ns": place[1], "checkpoint_id": place[2]}
    there: defaultdict[str, int] = defaultdict(int)
    wanted: defaultdict[str, int] = defaultdict(int)
    found = []
    for task, path, slot, channels, kind, payload in row["writes"] or ():
        known = at | {"task_id": _text(task), "task_path": _text(path), "slot": int(slot)}
        known |= {"channels": json.loads(channels), "type": _text(kind), "blob": payload}
        whole, writes = open_writes(place[0], known, sealing)
        name = known["task_id"]
        wanted[name] = max(wanted[name], whole)
        there[name] += sum(each.channel not in WRITES_IDX_MAP for each in writes)
        found.append((writes_sort_key(known["task_path"], name, int(slot)), name, writes))
    for name, whole in wanted.items():
        if there[name] < whole:
            raise DamagedState(f"{whole - there[name]} of the writes of task {name} are lost")
    found.sort(key=lambda each: each[0])
    return [(name, write) for _, name, writes in found for write in writes]


def _text(found: bytes | None) -> Any:
    return None if found is None else found.decode(errors="replace")


def config_of(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    """Return the config that names a checkpoint."""
    named = {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
    return RunnableConfig(configurable=named)


# --- A damaged checkpoint, named, with the one before it that a thread can go on from.

BEFORE: Final = """
SELECT checkpoint_id FROM daruma_checkpoints
WHERE thread_id = %(thread)s AND checkpoint_ns = '' AND checkpoint_id < %(since)s
ORDER BY checkpoint_id DESC OFFSET %(skipped)s LIMIT 100
"""
"""More than a delta channel's chain has between two of its snapshots."""


class DamagedCheckpoint(DamagedState):
    """Raised for a checkpoint that can not be read.

    ``since`` is the oldest one whose damage it is, such as a lost ancestor.
    """

    def __init__(self, place: Place, reason: str, *, since: str = "", advice: str = "") -> None:
        self.thread, namespace, checkpoint = place
        within = f" in {namespace!r}" if namespace else ""
        named = f"checkpoint {checkpoint}{within} of thread {self.thread!r}"
        super().__init__(f"{named}: {reason}{advice}")
        self._place, self._reason = place, reason
        self._since = since or checkpoint

    @property
    def before(self) -> dict[str, Any]:
        """What BEFORE takes, to find what a thread can go on from.

        A member's checkpoints begin anew with another checkpoint of the thread itself, but not with
        that which started the member.
        """
        return {"thread": self.thread, "since": self._since, "skipped": int(bool(self._place[1]))}

    def advising(self, whole: str | None) -> "DamagedCheckpoint":
        """Return the error with what to do: which checkpoint before it can be read, if any."""
        advice = "; none before it is whole: begin a new thread"
        if whole:
            advice = (
                f"; the one before it, {whole}, is whole: go on from there with "
                f"`daruma resume {self.thread} --from {whole}`, or with that `checkpoint_id` in "
                "the config"
            )
        return DamagedCheckpoint(self._place, self._reason, since=self._since, advice=advice)


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
        place = thread, namespace, checkpoint
        raise DamagedCheckpoint(place, str(error), since=since) from error


# --- Whether nothing is missing in the history that a delta channel's value is replayed from.
#
# The engine takes what there is of it: an ancestor or a write that is lost, it does not notice.

Notes = Mapping[str, Mapping[str, Any]]


@dataclass
class Walk:
    """What was found for some channels of one checkpoint, the ancestors newest first.

    ``open`` holds, for a channel without a snapshot, the ancestor at which its walk broke off.
    """

    target: str = ""
    chains: Mapping[str, Sequence[str]] = field(default_factory=dict)
    open: Mapping[str, str | None] = field(default_factory=dict)
    snapshots: frozenset[tuple[str, str]] = frozenset()
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)


def refuse_gaps(walk: Walk, notes: Notes) -> None:
    """Raise :class:`LostAncestor` where a checkpoint noted what is not there any more."""
    for channel, chain in walk.chains.items():
        lost = walk.open.get(channel)
        if lost:
            raise LostAncestor(f"its ancestor {lost} is lost", lost)
        for each in chain:
            manifest = notes.get(each, {}).get("manifest") or {}
            if channel in manifest.get("blobs", ()) and (channel, each) not in walk.snapshots:
                raise LostAncestor(f"the snapshot of {channel!r} at {each} is lost", each)
        for child, parent in zip([walk.target, *chain], [*chain, None], strict=True):
            if child not in notes or (parent is None and channel not in walk.open):
                continue
            manifest = sound(notes[child]["manifest"])
            if manifest["parent"] != parent:
                since = manifest["parent"] or ""
                raise LostAncestor(f"its ancestor {since or 'of old'} is lost", since)
            gone = manifest["writes"].get(channel, 0) - walk.writes[channel, parent or ""]
            if gone > 0 and parent:
                raise LostAncestor(
                    f"{gone} of the writes to {channel!r} at {parent} are lost", parent
                )


# --- The history that delta channels are replayed from: a chain of ancestors, and what these hold.
#
# LangGraph's own saver reads pages of 1,024 checkpoints and looks for a whole copy of each channel
# at each of them. Here the database goes from a checkpoint to the one before it, and only as far as
# some channel still lacks its copy; what each checkpoint notes of itself comes along.

CHAIN: Final = f"""
WITH RECURSIVE chain AS (
    SELECT checkpoint_id AS id, parent_checkpoint_id AS parent, checkpoint -> '{NAME}' AS manifest,
        NULL::jsonb AS held, NULL::jsonb AS inline, %(channels)s::text[] AS lacking
    FROM daruma_checkpoints
    WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = %(target)s
UNION ALL
    SELECT made.checkpoint_id, made.parent_checkpoint_id, told.{NAME},
        found.held, found.inline, found.lacking
    FROM chain
    CROSS JOIN LATERAL (
        SELECT checkpoint_id, parent_checkpoint_id, checkpoint FROM daruma_checkpoints
        WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = chain.parent
        LIMIT 1
    ) AS made
    CROSS JOIN LATERAL jsonb_to_record(
        CASE jsonb_typeof(made.checkpoint) WHEN 'object' THEN made.checkpoint ELSE '{{}}' END
    ) AS told ({NAME} jsonb, channel_versions jsonb, channel_values jsonb)
    CROSS JOIN LATERAL (
        SELECT
            jsonb_object_agg(each.channel, kept.version)
                FILTER (WHERE kept.version IS NOT NULL) AS held,
            jsonb_object_agg(each.channel, told.channel_values -> each.channel) FILTER (
                WHERE kept.version IS NULL AND told.channel_values ->> each.channel IS NOT NULL
            ) AS inline,
            array_agg(each.channel) FILTER (
                WHERE kept.version IS NULL AND told.channel_values ->> each.channel IS NULL
            ) AS lacking
        FROM unnest(chain.lacking) AS each (channel)
        LEFT JOIN LATERAL (
            SELECT version FROM daruma_blobs
            WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s
            AND channel = each.channel AND version = told.channel_versions ->> each.channel
            LIMIT 1
        ) AS kept ON true
    ) AS found
    WHERE chain.lacking IS NOT NULL AND chain.parent < chain.id
)
SELECT * FROM chain
"""  # noqa: S608 - of constants alone
"""``held`` are the versions of whole copies, ``inline`` what stands in the row in place of one.

Each ``LIMIT`` says that a key finds one row: Postgres, before it has counted a new table, would
go through the whole thread at each of its checkpoints.
"""
_WRITES_OF: Final = """
SELECT checkpoint_ns, checkpoint_id, task_id, task_path, slot, channels, type, blob
FROM daruma_writes AS own
WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s AND checkpoint_id = ANY(%(ids)s)
AND EXISTS (
    SELECT FROM unnest(%(channels)s::text[], %(oldest)s::text[]) AS wanted (channel, oldest)
    WHERE wanted.channel = ANY(own.channels) AND own.checkpoint_id >= wanted.oldest
)
"""
_COPIES: Final = """
SELECT channel, version, type, blob FROM daruma_blobs
JOIN unnest(%(channels)s::text[], %(versions)s::text[]) AS held (channel, version)
USING (channel, version) WHERE thread_id = %(thread)s AND checkpoint_ns = %(ns)s
"""

Target = tuple[str, str, str]
"""A thread, a namespace in it, and a checkpoint there."""


@dataclass(frozen=True)
class History:
    """What was found for some channels of a checkpoint, as it is stored."""

    target: Target
    chains: Mapping[str, Sequence[str]]
    open: Mapping[str, str | None]
    notes: Notes
    versions: Mapping[str, str]
    inline: Mapping[str, Any]
    writes: Sequence[DictRow]
    copies: Sequence[DictRow]

    @property
    def size(self) -> int:
        """Bytes of all that is to be unpacked."""
        return sum(len(row["blob"] or b"") for row in (*self.writes, *self.copies))

    def replayed(
        self, serde: SerializerProtocol, sealing: Sealing
    ) -> dict[str, DeltaChannelHistory]:
        """Return what each channel's value is made of, the oldest write first.

        Raises :class:`~daruma.state.errors.DamagedState`.
        """
        thread, namespace, target = self.target
        seeds = dict(self.inline)
        for row in self.copies:
            at = thread, namespace, row["channel"], row["version"]
            value = sealing.open(check_typed_value(row["type"], row["blob"]), at)
            seeds[row["channel"]] = serde.loads_typed(value)
        found: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
        for row in sorted(
            self.writes,
            key=lambda row: writes_sort_key(row["task_path"], row["task_id"], row["slot"]),
        ):
            for each in open_writes(thread, row, sealing)[1]:
                if each.channel in self.chains:
                    found[each.channel, row["checkpoint_id"]].append((row["task_id"], each))
        snapshots = frozenset(
            (row["channel"], self.chains[row["channel"]][-1]) for row in self.copies
        )
        counted = Counter({place: len(writes) for place, writes in found.items()})
        refuse_gaps(Walk(target, self.chains, self.open, snapshots, counted), self.notes)
        made: dict[str, DeltaChannelHistory] = {}
        for channel, chain in self.chains.items():
            made[channel] = {
                "writes": [
                    (task, channel, serde.loads_typed((each.kind, each.payload)))
                    for checkpoint in reversed(chain)
                    for task, each in found[channel, checkpoint]
                ]
            }
            if channel in seeds:
                made[channel]["seed"] = seeds[channel]
        return made


async def read_history(
    cursor: AsyncCursor[DictRow], target: Target, channels: Sequence[str]
) -> History:
    """Read what channels of a checkpoint are replayed from, in three queries at most."""
    thread, namespace, checkpoint = target
    named: dict[str, Any] = {"thread": thread, "ns": namespace}
    await cursor.execute(CHAIN, {**named, "target": checkpoint, "channels": [*channels]})
    notes = {row["id"]: row for row in await cursor.fetchall()}
    walked = {channel: _walked(notes, checkpoint, channel) for channel in channels}
    chains = {channel: chain for channel, (chain, _) in walked.items()}
    versions, inline = (
        {
            channel: notes[chain[-1]][kind][channel]
            for channel, chain in chains.items()
            if chain and channel in (notes[chain[-1]][kind] or ())
        }
        for kind in ("held", "inline")
    )
    still_open = {
        channel: at
        for channel, (_, at) in walked.items()
        if channel not in versions and channel not in inline
    }
    writes: Sequence[DictRow] = ()
    copies: Sequence[DictRow] = ()
    if long := {channel: chain for channel, chain in chains.items() if chain}:
        ids = list({each: 0 for chain in long.values() for each in chain})
        oldest = [chain[-1] for chain in long.values()]
        given = {**named, "ids": ids, "channels": [*long], "oldest": oldest}
        await cursor.execute(_WRITES_OF, given)
        writes = await cursor.fetchall()
    if versions:
        given = {**named, "channels": [*versions], "versions": [*versions.values()]}
        await cursor.execute(_COPIES, given)
        copies = await cursor.fetchall()
    return History(target, chains, still_open, notes, versions, inline, writes, copies)


def _walked(notes: Notes, target: str, channel: str) -> tuple[list[str], str | None]:
    """Return a channel's chain, newest first, and the ancestor that was looked for in vain."""
    chain = list[str]()
    at: str | None = notes[target]["parent"] if target in notes else None
    while at is not None and at in notes:
        chain.append(at)
        if channel not in (notes[at]["lacking"] or ()):
            return chain, None
        at = notes[at]["parent"]
    return chain, at
