"""What is said of putting files back: before it, after it, and where it is refused."""

from tests.parts import a_savepoint

from daruma.graph.command_line.output import Line
from daruma.graph.command_line.undo import (
    preview_lines,
    refused_lines,
    restored_lines,
    restored_values,
)
from daruma.graph.history import Place
from daruma.tools.snapshots.outcome import Change, Restored, RestoreRefused

PLACE = Place("my thread", "/ws", "7f", a_savepoint("2/p1"))
CLEAN = Restored(snapshot="7f", before="8a", paths=("a", "b"), exact=True)


def test_what_will_be_done_is_said_file_by_file() -> None:
    """Added, changed, deleted."""
    changes = [Change("new.py", "deleted"), Change("a.py", "changed"), Change("gone", "added")]

    assert preview_lines(PLACE, changes) == [
        Line("head", "Back to savepoint 2/p1", "/ws"),
        Line("minus", "new.py", "deleted"),
        Line("note", "a.py", "changed"),
        Line("plus", "gone", "added"),
    ]


def test_at_most_twenty_files_are_named_beforehand() -> None:
    """And the number of the others."""
    changes = [Change(f"{number}.py", "deleted") for number in range(25)]

    lines = preview_lines(Place("t", "/ws", "7f"), changes)

    assert lines[0].text == "Back to snapshot 7f"
    assert len([line for line in lines if line.tail == "deleted"]) == 20
    assert Line("note", "and 5 more") in lines


def test_where_nothing_is_to_be_done_that_is_said() -> None:
    """There is nothing to decide."""
    assert preview_lines(PLACE, [])[1:] == [Line("note", "nothing is to be put back")]


def test_what_was_put_back_can_be_undone() -> None:
    """The command is there to be pasted."""
    assert restored_lines("my thread", CLEAN) == [
        Line("ok", "2 paths were put back", "looked at again, and exact"),
        Line("line", "daruma undo 'my thread' --to 8a", "undoes this"),
    ]


def test_what_is_not_as_it_was_is_named() -> None:
    """Never called exact; what somebody else changed is named too."""
    restored = Restored("7f", "8a", ("a",), exact=False, left=("b: in use",), kept=("c",))

    assert restored_lines("t", restored)[:4] == [
        Line("bad", "1 path was put back", "not all is as it was"),
        Line("bad", "b: in use"),
        Line("note", "left alone, since only somebody else changed them:"),
        Line("note", "c"),
    ]


def test_a_refusal_names_all_files_and_both_ways_on() -> None:
    """RO-07: whoever changed them decides."""
    refused = RestoreRefused("no", ("a", "b"))

    lines = refused_lines("t", "2/p1", refused)

    assert [line.text for line in lines[1:]] == [
        "a",
        "b",
        "daruma undo t --to 2/p1 --keep",
        "daruma undo t --to 2/p1 --overwrite",
    ]
    assert refused_lines("t", None, refused)[-1].text == "daruma undo t --overwrite"


def test_programs_are_told_all_of_it() -> None:
    """The fields of ``Restored``, and what it was asked for."""
    assert restored_values(PLACE, CLEAN) == {
        "thread": "my thread",
        "workspace": "/ws",
        "savepoint": "2/p1",
        "snapshot": "7f",
        "before": "8a",
        "paths": ["a", "b"],
        "exact": True,
        "left": [],
        "kept": [],
    }
