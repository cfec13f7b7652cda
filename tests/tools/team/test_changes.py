"""A state of a workspace as one map, and what was changed in it."""

import os
from pathlib import Path

import pytest
from tests.flats import FOLDER

from daruma.tools.snapshots.outcome import Entry, Kind
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store
from daruma.tools.team.merging import above, changed, flat


def test_a_snapshot_becomes_one_map(tmp_path: Path) -> None:
    """Parents first, folders without content, no repository, not the workspace's own folder."""
    top = tmp_path / "w"
    (top / "d" / "e").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "d" / "x").write_text("x")
    (top / "d" / "l").symlink_to("x")
    os.mkfifo(top / "p")
    for path in (top / "d", top / "d" / "e"):
        path.chmod(0o755)
    snapshots = Snapshots(top, "t", Store(tmp_path / "store.sqlite3"))
    root = snapshots.take("x", by="work", fresh=True).snapshot.root
    with snapshots.store.locked() as contents:
        found = flat(contents.tree, root)

    assert list(found) == ["d", "p", "d/e", "d/l", "d/x"]
    assert found["d"] == found["d/e"] == FOLDER
    assert found["d/l"] == Entry("link", found["d/l"].mode, "x")
    assert found["p"].kind == "special"


@pytest.mark.parametrize(
    ("was", "now", "counts"),
    [
        (None, "file", True),
        ("file", None, True),
        ("file", "link", True),
        ("file", "file", False),
        ("unread", None, False),
        ("special", None, False),
        ("unread", "file", True),
        ("file", "special", True),
        (None, "special", False),
        (None, "unread", True),
    ],
)
def test_what_counts_as_changed(was: Kind | None, now: Kind | None, counts: bool) -> None:
    """What never came into a worktree is not deleted from it."""
    base, theirs = ({"a": Entry(k, 0, "")} if k else {} for k in (was, now))

    assert list(changed(base, theirs)) == (["a"] if counts else [])


def test_the_folders_above_a_path() -> None:
    """The nearest first; the workspace is none of them."""
    assert above("a/b/c") == ["a/b", "a"]
    assert above("a") == []
