"""A walk stays inside of the workspace, whatever somebody else does to it meanwhile."""

import hashlib
from pathlib import Path

import pytest
from tests.tools.test_path_race import attacked

from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store

TAKES = 25


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with a directory `d`, and a link to a directory outside."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "d").mkdir(parents=True)
    outside.mkdir()
    (work / "d" / "file").write_bytes(b"inside")
    (outside / "file").write_bytes(b"outside")
    (work / "link").symlink_to(outside)
    return work


def test_a_directory_that_becomes_a_link_leads_nowhere(work: Path, tmp_path: Path) -> None:
    """A directory is swapped for a link all the while, and nothing outside is ever read."""
    store = Store(tmp_path / "store.sqlite3")
    snapshots = Snapshots(work, "t", store)

    with attacked(work):
        for _ in range(TAKES):
            snapshots.take("attacked", by="work")

    with store.locked() as contents:
        assert contents.has_blob(hashlib.sha256(b"inside").hexdigest())
        assert not contents.has_blob(hashlib.sha256(b"outside").hexdigest())


def test_what_a_restore_writes_meanwhile_is_left_out(work: Path, tmp_path: Path) -> None:
    """Its temporary files are no part of the workspace."""
    snapshots = Snapshots(work, "t", Store(tmp_path / "store.sqlite3"))
    first = snapshots.take("first", by="others").snapshot
    (work / "d" / ".daruma-restore-1").write_text("half")

    assert snapshots.changes(first.id) == ()
