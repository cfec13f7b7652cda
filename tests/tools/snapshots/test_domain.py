"""What can not be told between snapshots whose ignore rules differ is left and named (RO-06)."""

from pathlib import Path

import pytest
from tests.snapshot_fuzz.reading import read

from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace whose rules ignore one file."""
    place = tmp_path / "work"
    place.mkdir()
    (place / ".gitignore").write_text("hidden\n")
    (place / "file").write_text("file\n")
    (place / "hidden").write_text("mine\n")
    return place


@pytest.fixture
def snapshots(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshots:
    """Its snapshots."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return Snapshots(work, "thread", Store(tmp_path / "store.sqlite3"))


def test_what_is_ignored_since_is_not_touched_and_is_named(
    snapshots: Snapshots, work: Path
) -> None:
    """It was not looked at, so nobody may say that it is as it was."""
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / ".gitignore").write_text("hidden\nfile\n")
    snapshots.take("second task", by="others", fresh=True)
    (work / "file").write_text("other\n")

    done = snapshots.restore(target, last="work")

    assert done.left == ("file: is ignored since the snapshot was taken, and was not looked at",)
    assert (work / "file").read_text() == "other\n"


def test_what_was_ignored_and_the_work_has_changed_since_is_not_deleted(
    snapshots: Snapshots, work: Path
) -> None:
    """The older snapshot does not have it, and yet it was there."""
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / ".gitignore").write_text("")
    snapshots.take("second task", by="others", fresh=True)
    (work / "hidden").write_text("changed\n")

    done = snapshots.restore(target, last="work")

    assert [line.partition(":")[0] for line in done.left] == ["hidden"]
    assert (work / "hidden").read_text() == "changed\n"


def test_what_was_ignored_and_nobody_has_changed_since_is_nothing_to_report(
    snapshots: Snapshots, work: Path
) -> None:
    """It lies outside of the older snapshot."""
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / ".gitignore").write_text("")
    snapshots.take("second task", by="others", fresh=True)
    (work / "file").unlink()

    done = snapshots.restore(target, last="work")

    assert (done.exact, done.paths, done.kept) == (True, ("file",), (".gitignore",))


def test_a_path_that_changed_kind_while_it_was_ignored_is_named(
    snapshots: Snapshots, work: Path
) -> None:
    """Directories were not ignored then, and files were: who made the file can not be told."""
    (work / ".gitignore").write_text("*\n!*/\n")
    (work / "d").mkdir()
    target = snapshots.take("first task", by="others", fresh=True).snapshot.id
    (work / "d").rmdir()
    (work / "d").write_text("a file now\n")
    (work / ".gitignore").write_text("")
    snapshots.take("second task", by="work", fresh=True)

    done = snapshots.restore(target)

    assert "d: changed while it was ignored, by whom is not known" in done.left
    assert (work / "d").read_text() == "a file now\n"


def test_a_directory_that_holds_ignored_files_keeps_its_mode(
    snapshots: Snapshots, work: Path
) -> None:
    """It is opened to remove what the work has made, and closed again, whatever was there once."""
    target = snapshots.take("task", by="others", fresh=True).snapshot.id
    (work / "file").unlink()
    (work / "file").mkdir()
    (work / "file" / "hidden").write_text("mine\n")
    (work / "file" / "made").write_text("made\n")
    (work / "file").chmod(0o555)
    before = read(work)

    done = snapshots.restore(target, last="work")

    assert (done.exact, done.paths) == (False, ("file/made",))
    assert read(work) == {path: each for path, each in before.items() if path != b"file/made"}
