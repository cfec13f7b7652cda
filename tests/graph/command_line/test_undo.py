"""``daruma undo``: files are put back as they were, when a person wants it."""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.daruma_command import DONE, Daruma, Said
from tests.parts import a_savepoint

from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._undo import (
    EXACT,
    REFUSED,
    UndoTalk,
    preview_lines,
    refused_lines,
    restored_lines,
    restored_values,
)
from daruma.graph.history import Place, snapshots_of
from daruma.graph.storage import open_postgres, thread_held
from daruma.tools.files import workspace_locked
from daruma.tools.snapshots import Change, Restored, RestoreRefused


def editing(command: str, **args: str) -> dict[str, Any]:
    """A turn that edits a file."""
    return {"calls": [{"name": "str_replace_editor", "args": {"command": command, **args}}]}


@pytest.fixture
def ws(daruma: Daruma) -> Path:
    """A workspace in which thread ``t`` made ``new.txt`` and changed ``old.txt``, in two tasks."""
    folder = daruma.folder / "ws"
    (folder / "old.txt").write_text("one\n")
    make = editing("create", path="new.txt", file_text="new\n")
    change = editing("str_replace", path="old.txt", old_str="one", new_str="two")
    daruma.script(main=[make, DONE, change, DONE])
    task(daruma, "First things")
    task(daruma, "Second things")
    return folder


def task(daruma: Daruma, goal: str) -> Said:
    model = ("--model", "scripted:script.json")
    said = daruma("run", goal, "--workspace", "ws", *model, "--thread", "t")
    assert said.code == 0, said.out
    return said


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.long
def test_an_undo_is_undone_by_the_snapshot_that_it_names(daruma: Daruma, ws: Path) -> None:
    """Back and forth, also through the first task."""
    first = daruma("undo", "t", "--to", "1", "--yes", "--json").json
    there = contents(ws)

    back = daruma("undo", "t", "--to", first["before"], "--yes", "--json")

    assert there == {"old.txt": "one\n"}
    assert (back.code, back.json["exact"], back.json["savepoint"]) == (0, True, None)
    assert contents(ws) == {"old.txt": "two\n", "new.txt": "new\n"}


def test_without_anybody_to_ask_it_is_not_done(daruma: Daruma, ws: Path) -> None:
    """Exit code 2, what would change, and how to say that it is wanted."""
    said = daruma("undo", "t")

    assert (said.code, contents(ws)["old.txt"]) == (2, "two\n")
    assert "old.txt  changed" in said.out
    assert (
        said.err == "daruma: nothing was put back: there is nobody to ask, so say it with --yes\n"
    )


def test_what_somebody_else_changed_too_is_not_undone(daruma: Daruma, ws: Path) -> None:
    """Refused with the file and both ways on; each of them does what it says."""
    (ws / "old.txt").write_text("mine\n")

    refused = daruma("undo", "t", "--yes", "--json")
    untouched = contents(ws)
    kept = daruma("undo", "t", "--yes", "--keep")
    left = contents(ws)
    overwritten = daruma("undo", "t", "--yes", "--overwrite")

    assert (refused.code, refused.json["conflicts"]) == (2, ["old.txt"])
    assert "daruma undo t --overwrite" in refused.err
    assert untouched["old.txt"] == left["old.txt"] == "mine\n"
    assert (kept.code, overwritten.code) == (1, 0)
    assert "old.txt" in kept.out
    assert contents(ws)["old.txt"] == "one\n"


@pytest.mark.long
def test_nothing_is_undone_under_a_run(daruma: Daruma, ws: Path) -> None:
    """Neither while the thread is run, nor while another one works in that folder: one line."""
    with open_postgres(daruma.url) as postgres, thread_held(postgres.checkpointer, "t"):
        thread = daruma("undo", "t", "--yes")
    with workspace_locked(str(ws)):
        workspace = daruma("undo", "t", "--yes")

    assert "thread 't' is being run by process" in thread.complaint
    assert "another run on this machine works in" in workspace.complaint
    assert contents(ws)["old.txt"] == "two\n"


def test_a_run_says_how_it_is_undone(daruma: Daruma) -> None:
    """Where there is a workspace to be put back."""
    daruma.script(main=[DONE])

    said = task(daruma, "Look")

    assert "undo     daruma undo t\n" in said.out


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "no such thread": (("undo", "nobody"), "'nobody': see `daruma threads`"),
    "no such thread to list": (("undo", "nobody", "--list"), "'nobody': see `daruma threads`"),
    "no such savepoint": (("undo", "t", "--to", "3"), "there are: 1, 2"),
    "both ways": (("undo", "t", "--keep", "--overwrite"), "one of --keep and --overwrite"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(daruma: Daruma, ws: Path, name: str) -> None:
    """With exit code 2, and nothing changed."""
    args, told = MISTAKES[name]

    said = daruma(*args)

    assert told in said.complaint
    assert contents(ws)["old.txt"] == "two\n"


# --- What is said of putting files back: before it, after it, and where it is refused.

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


def test_what_was_put_back_can_be_undone() -> None:
    """The command is there to be pasted."""
    assert restored_lines("my thread", CLEAN) == [
        Line("ok", "2 paths were put back", "looked at again, and exact"),
        Line("note", "not looked at: what git ignores, and what rollback.exclude names"),
        Line("line", "daruma undo 'my thread' --to 8a", "undoes this"),
    ]


def test_what_is_not_as_it_was_is_named() -> None:
    """Never called exact; what somebody else changed is named too."""
    restored = Restored("7f", "8a", ("a",), exact=False, left=("b: in use",), kept=("c",))

    assert restored_lines("t", restored)[:5] == [
        Line("ok", "1 path was put back"),
        Line("bad", "not all is as it was"),
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


# --- At a terminal a person sees what will change, and is asked.


@dataclass(frozen=True)
class Undone:
    """A workspace in which the work changed ``a.txt`` from ``one`` to ``two``, and made another."""

    folder: Path
    place: Place

    def by(self, read: Callable[[str], str], out: StringIO) -> int:
        """Talk with a person."""
        return UndoTalk(Paper(Console(file=out)), read=read).hold(self.place, "refuse", None)


@pytest.fixture
def undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Undone:
    """The workspace, which can be put back."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    snapshots = snapshots_of(str(folder), "t")
    start = snapshots.take("start", by="work", fresh=True).snapshot.id
    (folder / "a.txt").write_text("two")
    (folder / "new.txt").touch()
    snapshots.take("end", by="work")
    return Undone(folder, Place("t", str(folder), start))


def closed(_: str) -> str:
    raise EOFError


def unasked(question: str) -> str:
    raise AssertionError(question)


@pytest.mark.parametrize(("said", "code", "left"), [("y", EXACT, "one"), ("n", REFUSED, "two")])
def test_a_person_is_shown_what_will_change_and_asked(
    undone: Undone, said: str, code: int, left: str
) -> None:
    """No is an answer too: then nothing has changed."""
    out, asked = StringIO(), []

    def read(question: str) -> str:
        asked.append((question, out.getvalue()))
        return said

    found = undone.by(read, out)

    assert (found, (undone.folder / "a.txt").read_text()) == (code, left)
    assert len(asked) == 1
    assert "a.txt  changed" in asked[0][1]


def test_the_end_of_the_input_is_no(undone: Undone) -> None:
    """Nothing is done that nobody has agreed to."""
    out = StringIO()

    assert undone.by(closed, out) == REFUSED
    assert "nothing was put back" in out.getvalue()
    assert (undone.folder / "a.txt").read_text() == "two"


def test_where_nothing_is_to_be_put_back_nobody_is_asked(undone: Undone) -> None:
    """Done a second time it has nothing to do."""
    undone.by(lambda _: "y", StringIO())
    out = StringIO()

    assert undone.by(unasked, out) == EXACT
    assert "nothing is to be put back" in out.getvalue()


def test_conflicts_are_told_instead_of_a_question(undone: Undone) -> None:
    """There is nothing to agree to before a person has chosen a way."""
    (undone.folder / "a.txt").write_text("three")
    out = StringIO()

    assert undone.by(unasked, out) == REFUSED
    assert "--overwrite" in out.getvalue()
    assert (undone.folder / "a.txt").read_text() == "three"
