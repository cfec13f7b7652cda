"""Opening what lies beneath an open directory: never through a link, at any depth."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from daruma.tools.errors import PathRefused
from daruma.tools.files.openers import DIRECTORY, WalkingOpener, best_opener
from daruma.tools.files.paths import Parts, shown
from daruma.tools.snapshots.outcome import SnapshotUnavailable

GONE: Final = (FileNotFoundError, NotADirectoryError)


@contextmanager
def workspace_opened(workspace: Path) -> Iterator[int]:
    """Open the workspace itself. Raises SnapshotUnavailable if that can not be done."""
    with told_of(workspace):
        top = os.open(workspace, DIRECTORY | os.O_CLOEXEC)
    try:
        yield top
    finally:
        os.close(top)


@contextmanager
def told_of(workspace: Path) -> Iterator[None]:
    """Turn what the system or a path's check says into a SnapshotUnavailable."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SnapshotUnavailable(f"{shown(str(workspace))}: {why}: no snapshot of it") from error
    except PathRefused as error:
        raise SnapshotUnavailable(str(error)) from error


def plain(path: str) -> Parts:
    """Return a path's pieces. Raises SnapshotUnavailable for one that is no name beneath a root."""
    parts = tuple(path.split("/"))
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise SnapshotUnavailable(f"{shown(path)}: no path beneath the workspace")
    return parts


@contextmanager
def directory_opened(top: int, parts: Parts) -> Iterator[int]:
    """Open a directory beneath ``top``. Raises OSError."""
    fd = _open(top, parts, DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def _open(top: int, parts: Parts, flags: int) -> int:
    try:
        return best_opener().open(top, parts, flags, links=False)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    return WalkingOpener().open(top, parts, flags, links=False)
