"""Rows are as they were written, or they are refused (DU-05)."""

import copy
import json
from collections.abc import Sequence
from typing import Any

import ormsgpack
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from daruma.graph.storage import open_writes
from daruma.graph.storage._rows import (
    NAME,
    checked,
    inline_values,
    json_text,
    manifested,
    open_checkpoint,
    write_rows,
)
from daruma.graph.storage._sealing import Checked, Sealed, Sealing
from daruma.state.errors import DamagedState
from daruma.state.serializer import STORED_TYPES, DeltaSnapshot, StrictSerializer

# --- A checkpoint's row.

PLACE = ("t", "", "c1")
SEALINGS: list[Sealing] = [Checked(), Sealed(bytes(32))]
CHECKPOINT: dict[str, Any] = {
    "v": 4,
    "id": "c1",
    "ts": "2026-11-22T06:30:00+00:00",
    "channel_values": {"plan": [1], "failure": None, "ratio": 2.0},
    "channel_versions": {
        "plan": "1",
        "failure": "2",
        "ratio": "1",
        "steps": "2",
        "branch:to:x": "1",
    },
    "versions_seen": {"main": {"plan": "1"}},
    "updated_channels": ["plan"],
}
METADATA: dict[str, Any] = {"source": "loop", "step": 3, "parents": {}, "daruma_model": "m"}


def stored(sealing: Sealing) -> dict[str, Any]:
    """A row as Postgres gives it back: the value of ``plan`` lies elsewhere, 2.0 may become 2."""
    row = manifested(CHECKPOINT, METADATA, "c0", PLACE, sealing)
    row[NAME]["writes"] = {"steps": 2}
    if "ratio" in row["channel_values"]:
        row["channel_values"]["ratio"] = 2
    read: dict[str, Any] = json.loads(json.dumps(row))
    return read


def test_a_manifest_names_what_belongs_to_a_row() -> None:
    """Values that lie elsewhere, the parent, and the channels that its writes are replayed for."""
    manifest = manifested(CHECKPOINT, METADATA, "c0", PLACE, Checked())[NAME]

    assert manifest["blobs"] == ["plan"]
    assert manifest["parent"] == "c0"
    assert manifest["writes"] == {"steps": 0}


@pytest.mark.parametrize("sealing", SEALINGS)
def test_a_row_is_read_as_it_was_written(sealing: Sealing) -> None:
    """Without the manifest, which is nothing to the engine."""
    row = stored(sealing)

    assert checked(row, METADATA, "c1", PLACE, sealing) == (
        {key: value for key, value in row.items() if key != NAME},
        row[NAME],
    )


PATHS = [
    (key, inner) for key, value in CHECKPOINT.items() if isinstance(value, dict) for inner in value
]
KEYS = [(key,) for key in CHECKPOINT] + [
    path for path in PATHS if path[1] != "plan" or path[0] != "channel_values"
]


@given(st.sampled_from(SEALINGS), st.sampled_from(KEYS), st.sampled_from(["gone", "x", 7, [], {}]))
def test_a_row_with_any_part_changed_is_refused(
    sealing: Sealing, path: tuple[str, ...], put: Any
) -> None:
    """Or lost: keys, versions, values, what nodes have seen."""
    row = copy.deepcopy(stored(sealing))
    *outer, last = path
    part = row[outer[0]] if outer else row
    assume(last in part or put != "gone")
    if put == "gone":
        del part[last]
    else:
        part[last] = put

    with pytest.raises(DamagedState, match="its row"):
        checked(row, METADATA, "c1", PLACE, sealing)


@pytest.mark.parametrize("sealing", SEALINGS)
def test_what_the_engine_goes_on_with_in_metadata_is_checked_too(sealing: Sealing) -> None:
    """What callers note there is their own."""
    checked(stored(sealing), METADATA | {"daruma_model": "other"}, "c1", PLACE, sealing)

    with pytest.raises(DamagedState, match="its row is not what was stored"):
        checked(stored(sealing), METADATA | {"step": 4}, "c1", PLACE, sealing)


def test_a_sealed_row_is_refused_in_another_thread() -> None:
    """Without a key it may be copied."""
    plain, sealed = SEALINGS
    checked(stored(plain), METADATA, "c1", ("u", "", "c1"), plain)

    with pytest.raises(DamagedState, match="its row is not what was stored"):
        checked(stored(sealed), METADATA, "c1", ("u", "", "c1"), sealed)


class Word(str):
    """A text of a kind of its own, as enumerations are."""

    __slots__ = ()


class Share(float):
    """A number of a kind of its own, as those of NumPy are."""

    __slots__ = ()


ODD: dict[str, Any] = {
    "huge": 2**70,
    "tiny": 1e-7,
    "float": 1e300,
    "word": Word("w"),
    "share": Share(0.7),
    "keys": {1: "a"},
    "half a sign": "\ud800",
    "sign": "\u20ac",
}


@pytest.mark.parametrize("name", ODD)
def test_a_mark_is_of_what_json_says(name: str) -> None:
    """Whatever types said it, and whichever writer could."""
    metadata = METADATA | {"parents": {"a": ODD[name], **CHECKPOINT["channel_values"]}}
    row = manifested(CHECKPOINT, metadata, "c0", PLACE, Checked())
    read, known = json.loads(json.dumps([row, metadata], sort_keys=True))

    assert checked(read, known, "c1", PLACE, Checked())[0]["id"] == "c1"


def test_what_stands_in_the_row() -> None:
    """Scalars and empty lists: a tuple would come back as a list. Where all is hidden, only None.

    A float that is no JSON is not among them: Postgres would refuse the row.
    """
    values = {"sends": [], "calls": (), "plan": [1], "note": {}, "done": True, "none": None}
    odd = {str(each): each for each in (float("nan"), float("inf"), float("-inf"))}

    assert inline_values(values | odd, Checked()) == {"sends": [], "done": True, "none": None}
    assert inline_values(values | odd, SEALINGS[1]) == {"none": None}


def test_a_whole_copy_is_told_from_a_value() -> None:
    """The engine looks for its name in the row."""
    values = {"steps": DeltaSnapshot([1]), "plan": [1]}
    row = manifested(CHECKPOINT | {"channel_values": values}, METADATA, "c0", PLACE, Checked())

    assert row["channel_values"] == {"steps": True}
    assert row[NAME]["blobs"] == ["plan", "steps"]


# --- What is written into rows as JSON is what Python's own would have written.

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@pytest.mark.long
@given(VALUES)
def test_what_is_written_is_read_as_the_same(value: Any) -> None:
    """Also numbers that the fast writer does not know, and texts of any signs."""
    assert json.loads(json_text(value)) == value


@pytest.mark.parametrize("value", [b"x", {1}, object()])
def test_what_is_no_json_is_refused(value: object) -> None:
    """It would come back as something else."""
    with pytest.raises(TypeError, match="not JSON serializable"):
        json_text([value])


# --- What a task wrote stands in one row, and all else in a row each.

SERDE = StrictSerializer(STORED_TYPES)
AT = ("t", "", "c1", "task", "~__pregel_pull, tool")
WRITTEN = [("messages", ["said"]), ("calls", "call"), ("branch:to:main", None), ("steps", [1])]
NAMES = ("checkpoint_ns", "checkpoint_id", "task_id", "task_path", "slot", "channels")


def written(
    writes: Sequence[tuple[str, Any]], sealing: Sealing, *, together: bool
) -> list[dict[str, Any]]:
    """The rows of writes, by their columns."""
    made = write_rows(AT, writes, SERDE, sealing, together=together)
    return [dict(zip((*NAMES, "type", "blob"), row[1:], strict=True)) for row in made]


def read(rows: list[dict[str, Any]], sealing: Sealing) -> list[tuple[str, str, Any]]:
    """What a checkpoint has of them."""
    names = ("task_id", "task_path", "slot", "channels", "type", "blob")
    columns = [[row[name] for name in names] for row in rows]
    found = open_checkpoint(
        {
            **dict(zip(("thread_id", "checkpoint_ns", "checkpoint_id"), PLACE, strict=True)),
            "parent_checkpoint_id": None,
            "checkpoint": manifested(
                CHECKPOINT | {"channel_values": {}}, METADATA, None, PLACE, sealing
            ),
            "metadata": METADATA,
            "blobs": None,
            "writes": [
                [*(text.encode() for text in (task, path, str(slot), json.dumps(each), kind)), blob]
                for task, path, slot, each, kind, blob in columns
            ],
        },
        SERDE,
        sealing,
    )
    return [*(found.pending_writes or ())]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("sealing", SEALINGS)
def test_writes_come_back_in_their_order(sealing: Sealing, together: bool) -> None:
    """However many rows they are in, and however these come."""
    rows = written(WRITTEN, sealing, together=together)

    assert len(rows) == (1 if together else 4)
    assert read(rows[::-1], sealing) == [("task", *each) for each in WRITTEN]


@pytest.mark.parametrize("gone", range(4))
def test_any_row_that_is_lost_is_missed(gone: int) -> None:
    """Each of them tells how many writes there were."""
    rows = written(WRITTEN, Checked(), together=False)

    with pytest.raises(DamagedState, match="1 of the writes of task task are lost"):
        read(rows[:gone] + rows[gone + 1 :], Checked())


def test_special_channels_have_slots_of_their_own() -> None:
    """They are written over one by one, and not counted."""
    asked = ("__interrupt__", "?")
    rows = written([*WRITTEN, asked], Checked(), together=False)

    assert [row["slot"] for row in rows] == [0, 1, 2, 3, -3]
    assert ("task", *asked) in read(rows, Checked())
    assert len(read(rows[:-1], Checked())) == 4


PAYLOADS = [
    b"",
    b"\xc1",
    ormsgpack.packb({"a": 1}),
    ormsgpack.packb([1, []]),
    ormsgpack.packb([1, [["plan", "msgpack"]]]),
    ormsgpack.packb([1, [["another", "msgpack", b""]]]),
    ormsgpack.packb([7]),
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_is_no_row_of_writes_is_refused(payload: bytes) -> None:
    """Whoever writes into the database."""
    row = dict(zip(NAMES, ("", "c1", "task", "path", 0, ["plan"]), strict=True))
    kind, blob = Checked().seal(("writes", payload), ())

    with pytest.raises(DamagedState, match="the writes of a task are not what was stored"):
        open_writes("t", row | {"type": kind, "blob": blob}, Checked())


@pytest.mark.parametrize("moved", ["checkpoint_id", "task_id", "task_path", "slot"])
def test_sealed_writes_are_bound_to_their_place(moved: str) -> None:
    """As any other row."""
    (row,) = written(WRITTEN, SEALINGS[1], together=True)

    assert open_writes("t", row, SEALINGS[1])[0] == 4
    with pytest.raises(DamagedState, match="its place"):
        open_writes("t", row | {moved: "7"}, SEALINGS[1])
    with pytest.raises(DamagedState, match="its place"):
        open_writes("u", row, SEALINGS[1])
