"""Hashes are remembered for files that have not changed, and only for so many."""

import os
from pathlib import Path

import pytest

from daruma.tools.files.tree import SETTLED, FileHashes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("text")
    return path


def settled(status: os.stat_result) -> int:
    return max(status.st_mtime_ns, status.st_ctime_ns) + SETTLED


def test_a_hash_is_known_until_the_file_changes(file: Path) -> None:
    """Size, times, inode and path must all be the same."""
    hashes, status = FileHashes(), file.stat()
    hashes.keep(b"file", status, b"hash", settled(status))

    assert hashes.known(b"file", file.stat()) == b"hash"
    assert hashes.known(b"other", file.stat()) is None
    os.utime(file, (1, 1))
    assert hashes.known(b"file", file.stat()) is None


def test_a_file_that_was_just_changed_is_not_remembered(file: Path) -> None:
    """It could change again without its times telling, as git knows too."""
    hashes, status = FileHashes(), file.stat()
    hashes.keep(b"file", status, b"hash", settled(status) - 1)

    assert hashes.known(b"file", status) is None


def test_the_oldest_are_forgotten(file: Path) -> None:
    """A memory that only grows would be a leak."""
    hashes, status = FileHashes(most=2), file.stat()
    for path in (b"1", b"2", b"3"):
        hashes.keep(path, status, path, settled(status))

    assert [hashes.known(path, status) for path in (b"1", b"2", b"3")] == [None, b"2", b"3"]
