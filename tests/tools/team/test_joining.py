"""A member's work comes into the workspace whole or not at all, and once."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.worktrees import a_repository, git

from daruma.tools.snapshots import (
    ChangedBy,
    Entry,
    Restored,
    Snapshots,
    SnapshotUnavailable,
    Store,
    store_of,
)
from daruma.tools.team import JoinOutcome, join_work
from daruma.tools.team._worktree import lay_out

BASE = "".join(f"{n}\n" for n in range(9))


class Side:
    """A folder with snapshots; those of both sides lie in one store."""

    def __init__(self, folder: Path, store: Store) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.snapshots = Snapshots(folder, "t", store)
        self.write("text", BASE)
        self.began = self.keep("began")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def keep(self, label: str) -> str:
        return self.snapshots.take(label, by="work").snapshot.id


@pytest.fixture
def ours(tmp_path: Path) -> Side:
    """The workspace."""
    folder = tmp_path / "ours"
    return Side(folder, Store(store_of(folder)))


@pytest.fixture
def theirs(ours: Side, tmp_path: Path) -> Side:
    """A worktree."""
    return Side(tmp_path / "theirs", ours.snapshots.store)


def joined(ours: Side, theirs: Side) -> JoinOutcome:
    return join_work(ours.snapshots, theirs.began, theirs.keep("ended"), "merging p")


def test_work_comes_into_the_workspace(ours: Side, theirs: Side) -> None:
    """PL-06: what both changed in other lines is put together, what only others did stays."""
    ours.write("text", "ours\n" + BASE)
    ours.write("own", "own\n")
    theirs.write("text", BASE + "theirs\n")
    theirs.write("new/file", "new\n")

    assert joined(ours, theirs) == JoinOutcome(paths=("new", "new/file", "text"))
    assert ours.read("text") == f"ours\n{BASE}theirs\n"
    assert ours.read("new/file") == "new\n"
    assert ours.read("own") == "own\n"


def test_done_again_it_says_the_same(ours: Side, theirs: Side) -> None:
    """DU-01: a run that was killed after it goes on as if it had not been."""
    theirs.write("text", BASE + "theirs\n")

    first = joined(ours, theirs)

    assert joined(ours, theirs) == first
    assert ours.read("text") == BASE + "theirs\n"


def test_of_work_in_conflict_nothing_comes(ours: Side, theirs: Side) -> None:
    """Half of it may be worse than none; each path is told with why."""
    ours.write("text", "ours\n")
    theirs.write("text", "theirs\n")
    theirs.write("new", "new\n")

    done = joined(ours, theirs)

    assert done.paths == ()
    (conflict,) = done.conflicts
    assert conflict.startswith("text (")
    assert not (ours.folder / "new").exists()
    assert ours.read("text") == "ours\n"


def test_caches_neither_come_nor_conflict(ours: Side, theirs: Side) -> None:
    """They are remade."""
    for side, text in ((ours, "a"), (theirs, "b")):
        side.write(".pytest_cache/x", text)
        side.write("__pycache__/m.pyc", text)

    assert joined(ours, theirs) == JoinOutcome()
    assert ours.read("__pycache__/m.pyc") == "a"


def test_a_repository_that_the_work_has_made_comes_whole(ours: Side, theirs: Side) -> None:
    """PL-06: half of one is none."""
    made = a_repository(theirs.folder / "lib")

    joined(ours, theirs)

    for asked in (("log", "--oneline"), ("status", "--short")):
        assert git(ours.folder / "lib", *asked) == git(made, *asked)


def test_work_is_laid_out_with_markers_once(ours: Side, theirs: Side, tmp_path: Path) -> None:
    """What was settled by then is not overwritten when a killed run goes on."""
    settling = Side(tmp_path / "settling", ours.snapshots.store)
    settling.write("text", "ours\n")
    here = settling.keep("here")
    theirs.write("text", "theirs\n")
    ended = theirs.keep("ended")

    lay_out(settling.snapshots, here, theirs.began, ended, "p")

    assert "<<<<<<< the workspace\nours\n" in settling.read("text")
    assert "theirs\n>>>>>>> phase p\n" in settling.read("text")
    settling.write("text", "settled\n")
    lay_out(settling.snapshots, here, theirs.began, ended, "p")
    assert settling.read("text") == "settled\n"
    lay_out(settling.snapshots, here, theirs.began, ended, "q")
    assert "phase q" in settling.read("text")


def test_a_snapshot_that_is_not_there_is_said(ours: Side, theirs: Side) -> None:
    """And nothing has changed."""
    del theirs

    with pytest.raises(SnapshotUnavailable):
        join_work(ours.snapshots, "gone", "gone", "merging p")


def test_what_can_not_be_written_is_said(ours: Side, theirs: Side) -> None:
    """All of the work has to be there, or the phase has not been merged."""
    theirs.write("new", "new\n")

    class Stuck(Snapshots):
        def apply(self, goal: Mapping[str, Entry | None], label: str, *, by: ChangedBy) -> Restored:
            del by
            return Restored("s", "b", tuple(goal), exact=False, left=(f"new: {label}",))

    stuck = Stuck(ours.folder, "t", ours.snapshots.store)

    with pytest.raises(SnapshotUnavailable, match="could not be written: new"):
        join_work(stuck, theirs.began, theirs.keep("ended"), "merging p")
