"""A file that was read is not read again until something about it has changed."""

import os
from pathlib import Path

from daruma.tools.files.tree import SETTLED
from daruma.tools.snapshots.store import Store
from daruma.tools.snapshots.walk import Statuses


def test_a_settled_file_is_known_until_it_changes(tmp_path: Path) -> None:
    """Its hash is kept in the store; a change of its times is enough to forget it."""
    file = tmp_path / "file"
    file.write_text("x")
    status = file.lstat()
    with Store(tmp_path / "store.sqlite3").locked() as contents:
        statuses = Statuses(contents, b"/work", now=lambda: status.st_ctime_ns + SETTLED)
        statuses.keep(("file",), status, "digest")
        statuses.save()

        again = Statuses(contents, b"/work")

        assert again.known(("file",), status) == "digest"
        assert Statuses(contents, b"/other").known(("file",), status) is None
        os.utime(file, (0, 0))
        assert again.known(("file",), file.lstat()) is None


def test_a_file_that_has_just_changed_is_not_trusted(tmp_path: Path) -> None:
    """It may change again within one tick of its times."""
    file = tmp_path / "file"
    file.write_text("x")
    status = file.lstat()
    with Store(tmp_path / "store.sqlite3").locked() as contents:
        statuses = Statuses(contents, b"/work", now=lambda: status.st_ctime_ns + SETTLED - 1)
        statuses.keep(("file",), status, "digest")
        statuses.save()

        assert Statuses(contents, b"/work").known(("file",), status) is None


def test_files_that_were_not_seen_are_forgotten(tmp_path: Path) -> None:
    """The list is as long as the workspace is, not as its history."""
    file = tmp_path / "file"
    file.write_text("x")
    status = file.lstat()
    with Store(tmp_path / "store.sqlite3").locked() as contents:
        statuses = Statuses(contents, b"/work", now=lambda: status.st_ctime_ns + SETTLED)
        statuses.keep(("file",), status, "digest")
        statuses.save()

        Statuses(contents, b"/work").save()

        assert Statuses(contents, b"/work").known(("file",), status) is None
