"""What a history is replayed from is all there, or it is known what is missing (DU-05)."""

from collections import Counter
from typing import Any

import pytest

from daruma.graph.storage.history import Walk, refuse_gaps
from daruma.graph.storage.manifest import LostAncestor
from daruma.graph.storage.sealing import Checked, Sealed
from daruma.state.errors import DamagedState

SEALED = Sealed(bytes(32))


def note(parent: str | None, *blobs: str, **writes: int) -> dict[str, Any]:
    manifest = {"parent": parent, "blobs": list(blobs), "writes": writes, "mark": ""}
    return {"parent": parent, "manifest": manifest}


def walk(**changes: Any) -> Walk:
    """Of channel ``steps`` from 4 to 1, where there is a snapshot, with two writes at 2."""
    made: dict[str, Any] = {
        "target": "4",
        "chains": {"steps": ["3", "2", "1"]},
        "snapshots": frozenset({("steps", "1")}),
        "writes": Counter({("steps", "2"): 2, ("steps", "1"): 1}),
    }
    return Walk("t", "", **(made | changes))


NOTES = {
    "4": note("3"),
    "3": note("2", steps=2),
    "2": note("1", steps=1),
    "1": note("0", "steps"),
}


def test_a_whole_history_is_whole() -> None:
    """Up to its snapshot, whatever became of what lies before; and up to the first checkpoint."""
    refuse_gaps(walk(), NOTES, Checked())
    refuse_gaps(
        walk(snapshots=frozenset(), open={"steps": None}), NOTES | {"1": note(None)}, Checked()
    )


def test_writes_that_came_later_are_no_damage() -> None:
    """Another branch may have begun at the same checkpoint."""
    refuse_gaps(walk(writes=Counter({("steps", "2"): 5, ("steps", "1"): 1})), NOTES, Checked())


def test_checkpoints_of_old_say_nothing_and_are_read() -> None:
    """But not where all is sealed: there are none of old."""
    of_old = {each: {"manifest": None} for each in NOTES}

    refuse_gaps(walk(), of_old, Checked())
    with pytest.raises(DamagedState, match="has lost what it said of itself"):
        refuse_gaps(walk(), of_old, SEALED)


@pytest.mark.parametrize(
    ("changes", "notes", "reason", "since"),
    [
        ({"writes": Counter({("steps", "1"): 1})}, {}, "2 of the writes to 'steps' at 2", "2"),
        ({"writes": Counter({("steps", "2"): 2})}, {}, "1 of the writes to 'steps' at 1", "1"),
        ({"open": {"steps": "2"}}, {}, "its ancestor 2 is lost", "2"),
        ({"snapshots": frozenset()}, {}, "the snapshot of 'steps' at 1 is lost", "1"),
        ({}, {"3": note("x", steps=2)}, "its ancestor x is lost", "x"),
        (
            {"snapshots": frozenset(), "open": {"steps": None}},
            {"1": note("0")},
            "its ancestor 0 is lost",
            "0",
        ),
    ],
    ids=["writes", "writes at the snapshot", "ancestor", "snapshot", "another parent", "the first"],
)
def test_what_is_missing_is_told_with_its_place(
    changes: dict[str, Any], notes: dict[str, Any], reason: str, since: str
) -> None:
    """Checkpoints from there on are damaged, those before are not."""
    with pytest.raises(LostAncestor, match=reason) as refused:
        refuse_gaps(walk(**changes), NOTES | notes, Checked())

    assert refused.value.since == since
