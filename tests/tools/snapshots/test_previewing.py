"""What putting back would do is known beforehand, and looking leaves no trace."""

from pathlib import Path

import pytest

from daruma.tools.snapshots.outcome import Change
from daruma.tools.snapshots.restore import Preview, preview
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    """A workspace with four files."""
    (tmp_path / "ws").mkdir()
    for name in ("changed", "deleted", "theirs", "both"):
        (tmp_path / "ws" / name).write_text("before\n")
    return tmp_path / "ws"


@pytest.fixture
def snapshots(ws: Path) -> Snapshots:
    """Its snapshots; there are none yet."""
    return Snapshots(ws, "t", Store(ws.parent / "store.sqlite3"))


def work(ws: Path, snapshots: Snapshots) -> str:
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


def test_only_what_the_work_changed_would_be_put_back(ws: Path, snapshots: Snapshots) -> None:
    """What it added goes, what it deleted comes; conflicts are named, others' files are not."""
    target = work(ws, snapshots)

    foreseen = preview(snapshots, target)

    done = (Change("added", "deleted"), Change("changed", "changed"), Change("deleted", "added"))
    assert foreseen == Preview(done, conflicts=("both",))


def test_what_is_foreseen_is_what_is_done(ws: Path, snapshots: Snapshots) -> None:
    """Path by path, also where conflicts are overwritten."""
    target = work(ws, snapshots)

    foreseen = preview(snapshots, target, conflicts="overwrite")
    restored = snapshots.restore(target, conflicts="overwrite")

    assert tuple(each.path for each in foreseen.changes) == restored.paths
    assert "both" in restored.paths


def test_a_directory_is_named_by_what_lies_in_it(ws: Path, snapshots: Snapshots) -> None:
    """One that comes or goes empty is named itself."""
    target = snapshots.take("start", by="work", fresh=True).snapshot.id
    (ws / "made" / "in").mkdir(parents=True)
    (ws / "made" / "in" / "it").touch()
    (ws / "empty").mkdir()
    snapshots.take("end", by="work")

    foreseen = preview(snapshots, target)

    assert [each.path for each in foreseen.changes] == ["empty", "made/in/it"]


def test_looking_leaves_no_trace(ws: Path, snapshots: Snapshots) -> None:
    """What somebody else changed is still reported by the next one who looks."""
    target = work(ws, snapshots)
    kept = snapshots.kept()

    preview(snapshots, target)

    assert snapshots.kept() == kept
    drifted = snapshots.take("next", by="others").changes
    assert [each.path for each in drifted] == ["both", "theirs"]
    assert (ws / "changed").read_text() == "after\n"
