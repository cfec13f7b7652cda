"""Checkpoint rows as they are read and written: each value wrapped, each loss noticed."""

from base64 import b64decode, b64encode
from binascii import Error
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from langgraph.checkpoint.base import WRITES_IDX_MAP
from langgraph.checkpoint.serde.types import TASKS

from daruma.graph.storage._manifest import NAME, checked, sound
from daruma.graph.storage._saving import WriteRow, together, writes_in
from daruma.graph.storage._sealing import Place, Sealing, Typed, check_typed_value
from daruma.state.errors import DamagedState

# --- Values that stand in a checkpoint's own row: small ones, which the next checkpoint has no
# more.
#
# A row of their own would cost several times their size, in the table, its index and the log.

VALUES: Final = "values"
"""Their key in the manifest."""

FLEETING: Final = frozenset({TASKS, "calls"})
"""The channels whose values seldom outlast a checkpoint: sends, and the calls of a message.

The same for every saver: one that goes on with a thread finds a value where it was left.
"""

_MOST: Final = 300
"""Bytes: a checkpoint's row that gets large is cut to pieces by Postgres, each a row."""


def is_small(payload: bytes | None) -> bool:
    """Whether a value, as it is to be stored, may stand in the checkpoint's row."""
    return payload is not None and len(payload) <= _MOST


def values_within(blobs: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    """Return the rows of channels' values as a part of a manifest."""
    return {row[2]: [row[4], b64encode(row[5]).decode()] for row in blobs}


def typed_within(manifest: Mapping[str, Any]) -> dict[str, Typed]:
    """Return the values that a manifest holds, by channel, as they were stored.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    try:
        return {
            name: check_typed_value(kind, b64decode(text, validate=True))
            for name, (kind, text) in manifest.get(VALUES, {}).items()
        }
    except (AttributeError, Error, TypeError, ValueError):
        raise DamagedState("its row has lost a value that stands in it") from None


# --- Checkpoint rows as they are read and written: each value wrapped, each loss noticed.

_WHOLE: Final = """
jsonb_typeof(checkpoint) = 'object' AND jsonb_typeof(checkpoint -> 'v') = 'number'
AND jsonb_typeof(checkpoint -> 'channel_versions') = 'object'
"""
SELECT: Final = f"""
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata,
    CASE WHEN {_WHOLE} THEN checkpoint ELSE '{{"v": 4}}' END AS checkpoint,
    (
        SELECT array_agg(ARRAY[bl.channel::bytea, bl.type::bytea, bl.blob])
        FROM jsonb_each_text(
            CASE WHEN {_WHOLE} THEN checkpoint -> 'channel_versions' ELSE '{{}}' END
        ) AS versions
        JOIN checkpoint_blobs bl
            ON bl.thread_id = checkpoints.thread_id
            AND bl.checkpoint_ns = checkpoints.checkpoint_ns
            AND bl.channel = versions.key AND bl.version = versions.value
    ) AS channel_values,
    (
        SELECT array_agg(ARRAY[
            cw.task_id::text::bytea, cw.channel::bytea, cw.type::bytea, cw.blob,
            convert_to(cw.task_path, 'UTF8'), cw.idx::text::bytea
        ])
        FROM checkpoint_writes cw
        WHERE cw.thread_id = checkpoints.thread_id
            AND cw.checkpoint_ns = checkpoints.checkpoint_ns
            AND cw.checkpoint_id = checkpoints.checkpoint_id
    ) AS pending_writes
FROM checkpoints
"""  # noqa: S608 - of constants alone
"""LangGraph's own query, but for rows whose JSON is so damaged that it would end in an error."""

Row = Mapping[str, Any]
_ORDINARY: Final = "/"


def size(row: Row) -> int:
    """Return how many bytes a row has that are to be unpacked."""
    found = (*(row["channel_values"] or ()), *(row["pending_writes"] or ()))
    return sum(len(part or b"") for each in found for part in each)


def opened(row: Row, sealing: Sealing) -> dict[str, Any]:
    """Return a checkpoint's row as LangGraph reads it: unwrapped, and with all that belongs to it.

    Raises :class:`~daruma.state.errors.DamagedState`.
    """
    place = row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"]
    found = row["checkpoint"]
    checkpoint = checked(found, row["metadata"], row["checkpoint_id"], place, sealing)
    manifest = sound(found.get(NAME), sealing)
    blobs = [*_blobs(row, checkpoint, sealing), *_within(row, checkpoint, manifest or {}, sealing)]
    wanted = manifest["blobs"] if manifest else ()
    _refuse_lost(wanted, {name.decode() for name, _, _ in blobs})
    writes = list(_writes(row, place, sealing))
    return {**row, "checkpoint": checkpoint, "channel_values": blobs, "pending_writes": writes}


def _blobs(row: Row, checkpoint: Row, sealing: Sealing) -> Iterable[tuple[bytes, bytes, bytes]]:
    for name, kind, payload in row["channel_values"] or ():
        if kind == b"empty":
            continue
        version = checkpoint["channel_versions"][_text(name)]
        place = blob_place(row["thread_id"], row["checkpoint_ns"], _text(name), version)
        with_kind, value = sealing.open(check_typed_value(_text(kind), payload), place)
        yield name, with_kind.encode(), value


def _within(
    row: Row, checkpoint: Row, manifest: Row, sealing: Sealing
) -> Iterable[tuple[bytes, bytes, bytes]]:
    for name, value in typed_within(manifest).items():
        version = checkpoint["channel_versions"].get(name, "")
        place = blob_place(row["thread_id"], row["checkpoint_ns"], name, version)
        kind, payload = sealing.open(value, place)
        yield name.encode(), kind.encode(), payload


def _refuse_lost(wanted: Iterable[str], there: set[str]) -> None:
    for name in wanted:
        if name not in there:
            raise DamagedState(f"the value of channel {name!r} is lost")


def _writes(row: Row, place: Place, sealing: Sealing) -> Iterable[tuple[bytes, ...]]:
    there: defaultdict[str, dict[int, tuple[bytes, ...]]] = defaultdict(dict)
    together: defaultdict[str, int] = defaultdict(int)
    for task, channel, kind, payload, path, number in row["pending_writes"] or ():
        at = [*place, *map(_text, (task, path, number, channel))]
        opened_kind, value, whole = open_write(check_typed_value(_text(kind), payload), at, sealing)
        name = _text(task)
        for each in writes_in((*at[:5], int(number), at[6], opened_kind, value)):
            found = task, each.channel.encode(), each.kind.encode(), each.payload, path
            of_own = each.number == int(number)
            if of_own or each.number not in there[name]:  # what stood there first stays
                there[name][each.number] = (*found, str(each.number).encode())
        together[name] = max(together[name], whole)
    for name, whole in together.items():
        lost = whole - sum(number >= 0 for number in there[name])
        if lost > 0:
            raise DamagedState(f"{lost} of the writes of task {name} are lost")
    return [each for of_task in there.values() for each in of_task.values()]


def _text(found: bytes | None) -> Any:
    return None if found is None else found.decode(errors="replace")


def blob_place(thread: str, namespace: str, channel: str, version: str) -> Place:
    """Return the place of a channel's value."""
    return thread, namespace, channel, version


def sealed_writes(
    rows: Sequence[WriteRow], sealing: Sealing, passing: Collection[str] | None = None
) -> list[WriteRow]:
    """Wrap the writes of one task, each of which tells how many there are of them.

    Those in the slots of special channels are not counted: they are written over one by one.
    ``passing`` says that rows may be put together, and names the channels that this is done for.
    """
    whole = sum(row[6] not in WRITES_IDX_MAP for row in rows)
    made = rows if passing is None else together(rows, passing)
    return [
        (*row[:7], *sealing.seal((f"{row[7]}{_ORDINARY}{whole}", row[8]), _write_place(row)))
        for row in made
    ]


def _write_place(row: WriteRow) -> Place:
    return [*map(str, row[:7])]


def open_write(value: Typed, place: Place, sealing: Sealing) -> tuple[str, bytes, int]:
    """Unwrap a write; also return how many writes its task made together, 0 where not known."""
    kind, payload = sealing.open(value, place)
    kind, _, whole = kind.partition(_ORDINARY)
    return kind, payload, int(whole) if whole.isdecimal() else 0
