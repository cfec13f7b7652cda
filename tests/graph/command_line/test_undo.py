"""``daruma undo``: files are put back as they were, when a person wants it."""

from pathlib import Path
from typing import Any

import pytest
from tests.daruma_command import DONE, Daruma, Said

from daruma.graph.storage.ledgers import thread_held
from daruma.graph.storage.postgres import open_postgres
from daruma.tools.files.workspace import workspace_locked


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


def test_the_newest_task_is_undone(daruma: Daruma, ws: Path) -> None:
    """What the task before it did stays; what is done is shown, and can be undone."""
    said = daruma("undo", "t", "--yes")

    assert said.code == 0
    assert contents(ws) == {"old.txt": "one\n", "new.txt": "new\n"}
    assert "Back to savepoint 2" in said.out
    assert "1 path was put back  looked at again, and exact" in said.out


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


@pytest.mark.usefixtures("ws")
def test_savepoints_are_listed(daruma: Daruma) -> None:
    """Each with what it was taken for, whichever task that was."""
    said, told = daruma("undo", "t", "--list"), daruma("undo", "t", "--list", "--json")

    assert said.code == 0
    assert "1  before First things" in said.out
    assert "2  before Second things" in said.out
    assert "daruma undo t --to ID" in said.out
    assert [(each["id"], each["what"]) for each in told.json["savepoints"]] == [
        ("1", "First things"),
        ("2", "Second things"),
    ]
    assert told.json["savepoints"][0]["snapshot"] in said.out


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


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line(daruma: Daruma, ws: Path, name: str) -> None:
    """With exit code 2, and nothing changed."""
    args, told = MISTAKES[name]

    said = daruma(*args)

    assert told in said.complaint
    assert contents(ws)["old.txt"] == "two\n"
