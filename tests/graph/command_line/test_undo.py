"""``daruma undo``: files are put back as they were, when a person wants it."""

from pathlib import Path
from typing import Any

import pytest
from tests.daruma_command import DONE, Daruma, Said

from daruma.graph.command_line._output import Line
from daruma.graph.command_line._undo import (
    preview_lines,
)
from daruma.graph.history import Place
from daruma.graph.storage import open_postgres, thread_held
from daruma.tools.files import workspace_locked
from daruma.tools.snapshots import Change


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
def test_nothing_is_undone_under_a_run(daruma: Daruma, ws: Path) -> None:
    """Neither while the thread is run, nor while another one works in that folder: one line."""
    with open_postgres(daruma.url) as postgres, thread_held(postgres.checkpointer, "t"):
        thread = daruma("undo", "t", "--yes")
    with workspace_locked(str(ws)):
        workspace = daruma("undo", "t", "--yes")

    assert "thread 't' is being run by process" in thread.complaint
    assert "another run on this machine works in" in workspace.complaint
    assert contents(ws)["old.txt"] == "two\n"


# --- What is said of putting files back: before it, after it, and where it is refused.


def test_at_most_twenty_files_are_named_beforehand() -> None:
    """And the number of the others."""
    changes = [Change(f"{number}.py", "deleted") for number in range(25)]

    lines = preview_lines(Place("t", "/ws", "7f"), changes)

    assert lines[0].text == "Back to snapshot 7f"
    assert len([line for line in lines if line.tail == "deleted"]) == 20
    assert Line("note", "and 5 more") in lines


# --- At a terminal a person sees what will change, and is asked.
