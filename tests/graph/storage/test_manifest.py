"""A checkpoint's row is as it was written, or it is refused (DU-05)."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.graph.storage._manifest import NAME, as_stored, checked, manifest_of
from daruma.graph.storage._sealing import Checked, Sealed, Sealing
from daruma.state.errors import DamagedState

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
    manifest = manifest_of(CHECKPOINT, METADATA, "c0", PLACE, sealing)
    inline = {"failure": None, "ratio": 2}
    row = {**CHECKPOINT, "channel_values": inline, NAME: manifest | {"writes": {"steps": 2}}}
    read: dict[str, Any] = json.loads(json.dumps(row))
    return read


def test_a_manifest_names_what_belongs_to_a_row() -> None:
    """Values that lie elsewhere, the parent, and the channels that its writes are replayed for."""
    manifest = manifest_of(CHECKPOINT, METADATA, "c0", PLACE, Checked())

    assert manifest["blobs"] == ["plan"]
    assert manifest["parent"] == "c0"
    assert manifest["writes"] == {"steps": 0}


@pytest.mark.parametrize("sealing", SEALINGS)
def test_a_row_is_read_as_it_was_written(sealing: Sealing) -> None:
    """Without the manifest, which is nothing to the engine."""
    row = stored(sealing)

    assert checked(row, METADATA, "c1", PLACE, sealing) == {
        key: value for key, value in row.items() if key != NAME
    }


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


OF_OLD = [(SEALINGS[0], "fd77e976f638863d"), (SEALINGS[1], "bea312d06a72c61ff99951409a725fa8")]


@pytest.mark.parametrize(("sealing", "mark"), OF_OLD)
def test_a_mark_of_old_is_checked_as_it_ever_was(sealing: Sealing, mark: str) -> None:
    """It was made over a text that took Python ten times as long to write."""
    row = stored(sealing)
    row[NAME]["mark"] = mark

    assert checked(row, METADATA, "c1", PLACE, sealing)["id"] == "c1"
    with pytest.raises(DamagedState, match="its row is not what was stored"):
        checked(row | {"ts": "2026-11-22T06:30:01+00:00"}, METADATA, "c1", PLACE, sealing)


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
    manifest = manifest_of(CHECKPOINT, metadata, "c0", PLACE, Checked())
    row = {**CHECKPOINT, "channel_values": {"failure": None, "ratio": 2}, NAME: manifest}
    read, known = json.loads(json.dumps([row, metadata], sort_keys=True))

    assert checked(read, known, "c1", PLACE, Checked())["id"] == "c1"


def test_an_empty_list_stands_in_the_row() -> None:
    """And nothing else that is not a scalar: a tuple would come back as a list."""
    values = {"sends": [], "calls": (), "plan": [1], "note": {}, "done": True}

    assert as_stored(values) == {"sends": [], "done": True}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_float_that_is_no_json_does_not_stand_in_the_row(value: float) -> None:
    """Postgres would refuse the row, and the run would end with it."""
    checkpoint = CHECKPOINT | {"channel_values": {"ratio": value}}

    assert as_stored(checkpoint["channel_values"]) == {}
    assert manifest_of(checkpoint, METADATA, "c0", PLACE, Checked())["blobs"] == ["ratio"]
