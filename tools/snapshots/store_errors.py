"""The store's errors in one line that says what to do."""

import errno
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daruma.tools.snapshots.outcome import SnapshotUnavailable

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def explained_opening(path: Path) -> Iterator[None]:
    """Turn an OSError about the store's files into a SnapshotUnavailable."""
    try:
        yield
    except OSError as error:
        raise SnapshotUnavailable(_about_system(error, path)) from error


@contextmanager
def explained_use(path: Path) -> Iterator[None]:
    """Turn an error of the database into a SnapshotUnavailable."""
    try:
        yield
    except sqlite3.Error as error:
        raise SnapshotUnavailable(_about_database(error, path)) from error
    except zlib.error as error:
        raise damaged(path, "a content is not what was kept") from error


def damaged(path: Path, why: str) -> SnapshotUnavailable:
    """Return the error of a store that can not be relied on."""
    return SnapshotUnavailable(
        f"the snapshots in {path} are damaged ({why}): move the file away to begin anew"
    )


def in_use(path: Path, seconds: float) -> SnapshotUnavailable:
    """Return the error of a store that somebody else has held all the time."""
    return SnapshotUnavailable(
        f"the snapshots in {path} have been in use by another process for {seconds:g} s: let it go"
        " on or end it, and try again"
    )


def _about_system(error: OSError, path: Path) -> str:
    if error.errno in _NO_ROOM:
        return _no_room(path)
    why = os.strerror(error.errno or 0)
    return f"snapshots in {path}: {why}: make the folder writable, or set DARUMA_DATA_DIR"


def _about_database(error: sqlite3.Error, path: Path) -> str:
    text = str(error)
    if "full" in text:
        return _no_room(path)
    if isinstance(error, sqlite3.OperationalError):
        return f"the snapshots in {path} can not be used: {text}"
    return str(damaged(path, text))


def _no_room(path: Path) -> str:
    return f"no room on the disk for snapshots in {path}: free some, or set DARUMA_DATA_DIR"
