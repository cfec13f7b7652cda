"""Old snapshots go, but never what somebody still needs."""

import os
from pathlib import Path

import pytest

from daruma.tools.snapshots.outcome import By, Entry, RestoreRefused
from daruma.tools.snapshots.placing import Applying
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store


class Killed(BaseException):
    """Stands for the end of the process."""


class Dying(Applying):
    """A restore that ends before it has done anything."""

    def run(self) -> None:
        raise Killed


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    """Snapshots of a workspace with one file."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/file").write_text("0")
    return Snapshots(tmp_path / "work", "thread", Store(tmp_path / "kept/store.sqlite3"))


def taken(snapshots: Snapshots, content: str, *, at: float, by: By) -> str:
    """Write the file and take a snapshot; return its id."""
    (snapshots.workspace / "file").write_text(content)
    snapshots.now = lambda: at
    return snapshots.take(content, by=by).snapshot.id


def test_who_changed_what_since_a_snapshot_that_stays_is_not_forgotten(
    snapshots: Snapshots,
) -> None:
    """Else somebody's change would pass for the work's, and be put back without a word."""
    first = taken(snapshots, "0", at=0, by="others")
    taken(snapshots, "a person's", at=10, by="others")
    taken(snapshots, "the work's", at=1000, by="work")

    snapshots.prune(older_than=500, keep=[first])

    with pytest.raises(RestoreRefused, match="file"):
        snapshots.restore(first)


def test_a_clock_that_went_back_does_not_make_holes(snapshots: Snapshots) -> None:
    """What was taken after one that stays does so too, whatever its time says."""
    taken(snapshots, "0", at=1000, by="others")
    taken(snapshots, "1", at=10, by="others")
    taken(snapshots, "2", at=1000, by="work")

    assert snapshots.prune(older_than=500) == 0


def test_other_threads_snapshots_do_not_hold_old_ones(snapshots: Snapshots) -> None:
    """Each thread has its own row of snapshots."""
    other = Snapshots(snapshots.workspace, "other", snapshots.store)
    first = taken(other, "0", at=0, by="others")
    old = taken(snapshots, "1", at=1, by="others")
    new = taken(snapshots, "2", at=1000, by="others")

    assert snapshots.prune(older_than=500, keep=[first]) == 1
    assert [each.id for each in other.kept()] == [first]
    assert old not in {each.id for each in snapshots.kept()}
    assert [each.id for each in snapshots.kept()] == [new]


def test_a_restore_that_was_cut_short_keeps_what_it_needs_and_no_more(
    snapshots: Snapshots,
) -> None:
    """Its workspace may never come back: all else is deleted in time all the same."""
    other = Snapshots(snapshots.workspace.parent, "other", snapshots.store)
    large = snapshots.workspace / "large"
    large.write_bytes(os.urandom(300_000))
    for number in range(3):
        other.take(f"{number}", by="others")
    large.unlink()
    first = taken(snapshots, "0", at=0, by="others")
    taken(snapshots, "1", at=1, by="work")
    snapshots.way = Dying
    with pytest.raises(Killed):
        snapshots.restore(first, last="work")
    with snapshots.store.locked() as contents:
        for table in ("blobs", "trees"):
            contents.database.execute(f"UPDATE {table} SET put_at = 0")  # noqa: S608 - constants
    other.now = lambda: 1e10

    gone = other.prune(older_than=1)

    snapshots.way = Applying
    restored = snapshots.recover()
    assert gone == 3
    assert restored
    assert restored.exact
    assert (snapshots.workspace / "file").read_text() == "0"


def test_contents_that_only_a_cut_short_restore_needs_stay(snapshots: Snapshots) -> None:
    """A merge puts contents that no snapshot holds yet."""
    taken(snapshots, "0", at=0, by="others")
    with snapshots.store.locked() as contents:
        digest = contents.put_blob(b"merged")
    snapshots.way = Dying
    with pytest.raises(Killed):
        snapshots.apply({"file": Entry("file", 0o644, digest)}, "merge", by="work")
    with snapshots.store.locked() as contents:
        contents.database.execute("UPDATE blobs SET put_at = 0")
    snapshots.now = lambda: 1e10

    gone = snapshots.prune(older_than=1)

    snapshots.way = Applying
    snapshots.recover()
    assert gone == 1
    assert (snapshots.workspace / "file").read_text() == "merged"
