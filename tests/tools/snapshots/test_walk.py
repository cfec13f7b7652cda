"""A walk stays inside of the workspace, whatever somebody else does to it meanwhile."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools.files.test_beneath import attacked

from daruma.tools.files import SETTLED
from daruma.tools.snapshots import Snapshots, Store, Tree
from daruma.tools.snapshots._ignore import Rules
from daruma.tools.snapshots._states import Reader, Statuses, Walk
from daruma.tools.snapshots._store import Contents, workspace_opened

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


def to_nothing(folder: Path) -> None:
    """Leave nothing where a directory was."""
    shutil.rmtree(folder)


def to_a_file(folder: Path) -> None:
    """Put a file where a directory was."""
    shutil.rmtree(folder)
    folder.write_bytes(b"now a file")


def to_a_link(folder: Path) -> None:
    """Put a link where a directory was."""
    shutil.rmtree(folder)
    folder.symlink_to("/")


@pytest.mark.parametrize(
    ("swap", "kind"), [(to_nothing, None), (to_a_file, "file"), (to_a_link, "link")]
)
def test_a_directory_that_is_swapped_after_it_was_listed(
    work: Path, swap: Callable[[Path], None], kind: str | None
) -> None:
    """It is taken for what it is when its turn comes; one that is gone is as if it never was."""
    (work / "file").write_bytes(b"read before the directories beside it are looked into")
    trees: dict[str, Tree] = {}

    def put(_: bytes) -> str:
        if (work / "d").is_dir():
            swap(work / "d")
        return "digest"

    def put_tree(tree: Tree) -> str:
        trees[str(len(trees))] = tree
        return str(len(trees) - 1)

    with workspace_opened(work) as top:
        root = Walk(top, Rules(), Reader(put)).root(put_tree)

    found = trees[root].get("d")
    assert (found.kind if found else None) == kind
    assert len(trees) == 1


def test_what_a_restore_writes_meanwhile_is_left_out(work: Path, tmp_path: Path) -> None:
    """Its temporary files are no part of the workspace."""
    snapshots = Snapshots(work, "t", Store(tmp_path / "store.sqlite3"))
    first = snapshots.take("first", by="others").snapshot
    (work / "d" / ".daruma-restore-1").write_text("half")

    assert snapshots.changes(first.id) == ()


# --- A file that was read is not read again until something about it has changed.


def kept_statuses(contents: Contents, file: Path, later: int) -> os.stat_result:
    """Keep the hash of a file, so much later than its last change."""
    status = file.lstat()
    statuses = Statuses(contents, b"/work", now=lambda: status.st_ctime_ns + later)
    statuses.keep(("file",), status, "digest")
    statuses.save()
    return status


def test_a_settled_file_is_known_until_it_changes(tmp_path: Path) -> None:
    """Its hash is kept in the store; a change of its times is enough to forget it.

    One that has just changed is not trusted: it may change again within one tick of its times.
    What was not seen is forgotten: the list is as long as the workspace, not as its history.
    """
    file = tmp_path / "file"
    file.write_text("x")
    with Store(tmp_path / "store.sqlite3").locked() as contents:
        status = kept_statuses(contents, file, SETTLED - 1)
        assert Statuses(contents, b"/work").known(("file",), status) is None

        kept_statuses(contents, file, SETTLED)
        Statuses(contents, b"/other").save()
        again = Statuses(contents, b"/work")
        assert again.known(("file",), status) == "digest"
        assert Statuses(contents, b"/other").known(("file",), status) is None
        os.utime(file, (0, 0))
        assert again.known(("file",), file.lstat()) is None

        status = kept_statuses(contents, file, SETTLED)
        Statuses(contents, b"/work").save()
        assert Statuses(contents, b"/work").known(("file",), status) is None
