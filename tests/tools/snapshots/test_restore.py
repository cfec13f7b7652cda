"""Putting a workspace back: what the work did is undone, what others did stays."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.git_ground import repository
from tests.snapshot_fuzz.reading import read
from tests.snapshot_race import race

from daruma.tools.snapshots import (
    Change,
    Entry,
    RestoreRefused,
    Snapshots,
    SnapshotUnavailable,
    Store,
    preview_restore,
)
from daruma.tools.snapshots._snapshots import Preview


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with three files."""
    place = tmp_path / "work"
    place.mkdir()
    for name in ("a", "b", "c"):
        (place / name).write_text(f"{name}\n")
    return place


@pytest.fixture
def snapshots(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshots:
    """Its snapshots."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    return Snapshots(work, "thread", Store(tmp_path / "store.sqlite3"))


def start(snapshots: Snapshots) -> str:
    """Take the snapshot of a task's start."""
    return snapshots.take("start", by="others", fresh=True).snapshot.id


def test_what_others_changed_is_kept_and_what_the_work_changed_is_put_back(
    snapshots: Snapshots, work: Path
) -> None:
    """Two people in one workspace: an undo takes back only the one's changes."""
    target = start(snapshots)
    (work / "a").write_text("work\n")
    (work / "made").write_text("work\n")
    snapshots.take("command", by="work")
    (work / "b").write_text("person\n")

    done = snapshots.restore(target)

    assert (done.exact, done.paths, done.kept) == (True, ("a", "made"), ("b",))
    assert sorted(os.listdir(work)) == ["a", "b", "c"]  # noqa: PTH208
    assert [(work / name).read_text() for name in "abc"] == ["a\n", "person\n", "c\n"]


def test_what_a_person_wrote_over_the_work_is_not_undone_unasked(
    snapshots: Snapshots, work: Path
) -> None:
    """It is refused by name, and nothing is changed; overwriting can be undone.

    Keeping it puts back the rest, and is not called exact.
    """
    target = start(snapshots)
    (work / "a").write_text("work\n")
    (work / "b").write_text("work\n")
    snapshots.take("command", by="work")
    (work / "a").write_text("person\n")
    before, known = read(work), snapshots.kept()

    with pytest.raises(RestoreRefused, match=r"somebody else also changed a: keep") as caught:
        snapshots.restore(target)
    assert caught.value.conflicts == ("a",)
    assert (read(work), snapshots.kept()) == (before, known)

    over = snapshots.restore(target, conflicts="overwrite")
    assert (over.exact, (work / "a").read_text()) == (True, "a\n")
    assert snapshots.restore(over.before).exact
    assert read(work) == before

    kept = snapshots.restore(target, conflicts="keep")
    assert (kept.exact, kept.paths) == (False, ("b",))
    assert kept.left == ("a: somebody else changed it too",)
    assert [(work / name).read_text() for name in "ab"] == ["person\n", "b\n"]


def test_a_refusal_names_ten_paths_and_carries_all(snapshots: Snapshots, work: Path) -> None:
    """One line for a person, everything for a program."""
    target = start(snapshots)
    for content, by in (("work", "work"), ("person", "others")):
        for number in range(12):
            (work / f"{number:02}").write_text(content)
        snapshots.take("change", by="work" if by == "work" else "others")

    with pytest.raises(RestoreRefused, match=r"00, 01, .*, 09 and 2 more: keep") as caught:
        snapshots.restore(target)

    assert len(caught.value.conflicts) == 12


def test_a_file_of_somebody_elses_keeps_the_directory_that_the_work_made(
    snapshots: Snapshots, work: Path
) -> None:
    """It is theirs now as well."""
    target = start(snapshots)
    (work / "new").mkdir()
    (work / "new" / "works").write_text("work")
    snapshots.take("command", by="work")
    (work / "new" / "theirs").write_text("person")

    done = snapshots.restore(target)

    assert (done.exact, done.paths, done.kept) == (True, ("new/works",), ("new", "new/theirs"))


def test_what_can_not_be_put_back_is_said_to_be_left(snapshots: Snapshots, work: Path) -> None:
    """An ignored file in the way is not deleted: the directory that holds it stays, and is named.

    What can not be made again, as a pipe or a large file that is gone, is not claimed.
    """

    def large(name: str) -> None:
        with (work / name).open("wb") as file:
            file.truncate(200 * 1024 * 1024)

    (work / ".gitignore").write_text("secret\n")
    os.mkfifo(work / "pipe")
    large("large")
    target = start(snapshots)
    (work / "new").mkdir(mode=0o711)
    (work / "new" / "secret").write_text("mine")
    (work / "new" / "file").write_text("work")
    (work / "pipe").unlink()
    (work / "large").unlink()
    large("larger")

    done = snapshots.restore(target, last="work")

    assert (done.exact, done.paths) == (False, ("new/file",))
    assert [line.partition(":")[0] for line in done.left] == ["large", "larger", "new", "pipe"]
    assert "new: holds files that are ignored, or that somebody else made" in done.left
    assert (work / "new" / "secret").read_text() == "mine"
    assert (work / "larger").exists()


def test_a_hard_link_that_leads_outside_keeps_content_and_mode_there(
    snapshots: Snapshots, work: Path, tmp_path: Path
) -> None:
    """A file gets a new inode where the old one has other names."""
    outside = tmp_path / "outside"
    outside.write_text("a\n")
    (work / "linked").hardlink_to(outside)
    outside.chmod(0o600)
    target = start(snapshots)
    (work / "linked").chmod(0o777)

    done = snapshots.restore(target, last="work")

    assert done.exact
    assert (outside.stat().st_mode & 0o7777, (work / "linked").stat().st_mode & 0o7777) == (
        0o777,
        0o600,
    )


def test_a_rewritten_ignore_file_hides_nothing(snapshots: Snapshots, work: Path) -> None:
    """What is outside was settled when the task began."""
    target = start(snapshots)
    (work / ".gitignore").write_text("*\n")
    (work / "hidden").write_text("work")
    (work / "a").unlink()
    snapshots.take("command", by="work")

    done = snapshots.restore(target)

    assert done.exact
    assert sorted(os.listdir(work)) == ["a", "b", "c"]  # noqa: PTH208


@pytest.mark.parametrize("command", ["git checkout .", "git clean -fdx", "rm -rf *"])
def test_a_bad_rollback_command_is_undone(command: str, snapshots: Snapshots, work: Path) -> None:
    """What the user had, modified and untracked, is back; git is as the command has left it."""
    repository(work)
    (work / "a").write_text("modified\n")
    (work / "notes").mkdir()
    (work / "notes" / "untracked").write_text("mine\n")
    target = start(snapshots)
    before = read(work)
    subprocess.run(command, shell=True, cwd=work, check=True, capture_output=True)  # noqa: S602
    changed = read(work)

    done = snapshots.restore(target, last="work")

    assert changed != before
    assert done.exact
    assert files(read(work)) == files(before)
    assert files(read(work), git=True) == files(changed, git=True)


def test_a_repository_that_was_emptied_is_said_to_be_left(snapshots: Snapshots, work: Path) -> None:
    """A sandbox holds on to a folder `.git` while all in it is removed: that is no repository."""
    repository(work)
    target = start(snapshots)
    (work / ".git" / "HEAD").unlink()
    changes = snapshots.take("command", by="work").changes

    done = snapshots.restore(target)

    assert [(each.path, each.what) for each in changes] == [(".git", "changed")]
    assert (done.exact, done.left) == (False, (".git: a git repository is never touched",))


def files(state: dict[bytes, tuple[str, int, str]], *, git: bool = False) -> object:
    """Return git's own files of a state, or all others."""
    return {p: thing for p, thing in state.items() if (p.split(b"/")[0] == b".git") == git}


def test_single_paths_are_put_to_entries_with_what_lies_in_and_above_them(
    snapshots: Snapshots, work: Path
) -> None:
    """Merging needs no plan: it says what shall be where."""
    (work / "old").mkdir()
    (work / "old" / "file").write_text("old")
    start(snapshots)
    with snapshots.store.locked() as contents:
        digest = contents.put_blob(b"new")
    goal = {"new/deep/file": Entry("file", 0o640, digest), "old": None}

    done = snapshots.apply(goal, "merge", by="work")

    assert done.exact
    assert done.paths == ("new", "new/deep", "new/deep/file", "old", "old/file")
    assert (work / "new/deep/file").read_bytes() == b"new"
    assert snapshots.restore(done.before).exact
    assert (work / "old" / "file").read_text() == "old"


def test_what_can_not_be_done_is_an_error_before_anything_changes(
    snapshots: Snapshots, work: Path
) -> None:
    """Half of a restore would be worse than none: a content that the store has lost ends it.

    Who changed what since is known for a thread's own snapshots only.
    """
    target = start(snapshots)
    foreign = start(Snapshots(work, "other", snapshots.store))
    (work / "a").unlink()
    (work / "new").write_text("work")
    with snapshots.store.locked() as contents:
        contents.database.execute("DELETE FROM blobs WHERE CAST(data AS TEXT) LIKE 'a%'")

    for id_, said in (
        (target, r"of a is not in .*: nothing was changed"),
        (foreign, r"no snapshot .* of this thread and workspace"),
    ):
        with pytest.raises(SnapshotUnavailable, match=said):
            snapshots.restore(id_, last="work")
    assert (work / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is locked for the superuser")
def test_what_the_work_has_locked_is_opened_again(snapshots: Snapshots, work: Path) -> None:
    """Modes alone were changed, and the content under them is what it should be."""
    (work / "d").mkdir()
    (work / "d" / "file").write_text("d")
    target = start(snapshots)
    before = read(work)
    (work / "a").chmod(0)
    (work / "d").chmod(0)
    snapshots.take("command", by="work")

    done = snapshots.restore(target)

    assert done.exact
    assert read(work) == before


@pytest.mark.parametrize("link", [False, True], ids=["file", "link"])
def test_what_a_person_writes_while_it_is_put_back_is_never_lost(
    snapshots: Snapshots, work: Path, *, link: bool
) -> None:
    """At whatever step it comes: it stays, and putting back does not claim to be exact."""
    if link:
        (work / "a").unlink()
        (work / "a").symlink_to("b")
    target = start(snapshots)
    moments = iter(range(100))
    for moment in moments:
        calls = iter(range(100))
        (work / "a").unlink()
        (work / "a").write_text(f"work {moment}\n")
        snapshots.take("command", by="work")

        def edit(moment: int = moment, calls: Iterator[int] = calls) -> None:
            if next(calls) == moment:
                (work / "a").unlink()
                (work / "a").write_text("person\n")

        snapshots.step = edit
        done = snapshots.restore(target, conflicts="overwrite")
        snapshots.step = lambda: None
        if next(calls) <= moment:
            break

        there = not (work / "a").is_symlink() and (work / "a").read_text() == "person\n"
        assert there, f"lost at step {moment}, said to be exact: {done.exact}"
    assert moment >= 8  # else no step was in between


@pytest.mark.parametrize("path", ["", "..", "../x", "/x", "a//b", "./a", "a/../../x", "a\0b"])
def test_a_single_path_that_leads_anywhere_else_is_refused(
    snapshots: Snapshots, work: Path, path: str
) -> None:
    """Nothing is changed, not even a mode outside of the workspace, and the store stays of use."""
    start(snapshots)
    work.parent.chmod(0o700)
    before = read(work.parent)

    with pytest.raises(SnapshotUnavailable, match="no path beneath"):
        snapshots.apply({path: Entry("directory", 0o755, "")}, "made", by="work")

    assert read(work.parent) == before
    snapshots.take("goes on", by="work")


# --- What putting back would do is known beforehand, and looking leaves no trace.


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """A workspace with four files."""
    (tmp_path / "ws").mkdir()
    for name in ("changed", "deleted", "theirs", "both"):
        (tmp_path / "ws" / name).write_text("before\n")
    return tmp_path / "ws"


@pytest.fixture
def snapshots_previewing(ws: Path) -> Snapshots:
    """Its snapshots; there are none yet."""
    return Snapshots(ws, "t", Store(ws.parent / "store.sqlite3"))


def work_previewing(ws: Path, snapshots: Snapshots) -> str:
    """Take a snapshot, let the work do something, then somebody else; return the snapshot."""
    target = snapshots.take("start", by="work", fresh=True).snapshot.id
    (ws / "changed").write_text("after\n")
    (ws / "deleted").unlink()
    (ws / "added").touch()
    (ws / "both").write_text("after\n")
    snapshots.take("end", by="work")
    (ws / "theirs").write_text("theirs\n")
    (ws / "both").write_text("theirs\n")
    return target


def test_only_what_the_work_changed_would_be_put_back(
    ws: Path, snapshots_previewing: Snapshots
) -> None:
    """What it added goes, what it deleted comes; conflicts are named, others' files are not.

    Looking leaves no trace: what somebody else changed is still told to the next one who looks.
    """
    target = work_previewing(ws, snapshots_previewing)
    kept = snapshots_previewing.kept()

    foreseen = preview_restore(snapshots_previewing, target)

    done = (Change("added", "deleted"), Change("changed", "changed"), Change("deleted", "added"))
    assert foreseen == Preview(done, conflicts=("both",))
    assert snapshots_previewing.kept() == kept
    assert (ws / "changed").read_text() == "after\n"
    drifted = snapshots_previewing.take("next", by="others").changes
    assert [each.path for each in drifted] == ["both", "theirs"]


def test_what_is_foreseen_is_what_is_done(ws: Path, snapshots_previewing: Snapshots) -> None:
    """Path by path, also where conflicts are overwritten."""
    target = work_previewing(ws, snapshots_previewing)

    foreseen = preview_restore(snapshots_previewing, target, conflicts="overwrite")
    restored = snapshots_previewing.restore(target, conflicts="overwrite")

    assert tuple(each.path for each in foreseen.changes) == restored.paths
    assert "both" in restored.paths


def test_a_directory_is_named_by_what_lies_in_it(ws: Path, snapshots_previewing: Snapshots) -> None:
    """One that comes or goes empty is named itself."""
    target = snapshots_previewing.take("start", by="work", fresh=True).snapshot.id
    (ws / "made" / "in").mkdir(parents=True)
    (ws / "made" / "in" / "it").touch()
    (ws / "empty").mkdir()
    snapshots_previewing.take("end", by="work")

    foreseen = preview_restore(snapshots_previewing, target)

    assert [each.path for each in foreseen.changes] == ["empty", "made/in/it"]


# --- Directories that become links while a workspace is put back (RO-06, ED-02).


def test_a_directory_swapped_for_a_link_lets_no_restore_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written or deleted where the link leads; ``python -m tests.snapshot_race``."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))

    raced = race(tmp_path, lambda number: number < 50)

    assert raced.after == raced.before
    assert raced.swaps > 0
