"""What comes of snapshots, what they know of a name, and opening names without following links."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from daruma.state.errors import DarumaError
from daruma.tools.errors import PathRefused
from daruma.tools.files import (
    DIRECTORY,
    Parts,
    best_opener,
    closing_fd,
    open_beneath,
    printable_path,
)

# --- Paths of any bytes as text that can be stored, sent and printed.


def told(parts: Parts) -> str:
    """Return a path as valid Unicode: bytes that are none are written as escapes."""
    return storable("/".join(parts))


def storable(text: str) -> str:
    """Return a text as valid Unicode."""
    return text.encode(errors="backslashreplace").decode()


# --- What a snapshot knows of one name in a directory.

EntryKind = Literal["file", "link", "directory", "repository", "special", "unread"]
"""``repository`` is a ``.git``, which is never looked into; ``special`` a socket, pipe or device;
``unread`` a file that is too large, or a file or directory that may not be read: known to be there,
and not kept."""

ROOT_NAME: Final = "."
"""The name in a root's tree that stands for the workspace itself: a directory with a mode and no
content. No file can have this name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name. ``mode`` holds the permission bits (0o7777), 0 for what has none of its own.

    ``content`` is the SHA-256 (hexadecimal) of a file's bytes, the id of a directory's tree, the
    target of a link; of what is not kept, what tells it from another.
    """

    kind: EntryKind
    mode: int
    content: str


Tree: TypeAlias = dict[str, Entry]
"""A directory: names, as ``os.fsdecode`` gives them, to entries."""


# --- What comes of snapshots: one taken, files that changed, a workspace put back.

What = Literal["added", "changed", "deleted"]

ChangedBy = Literal["work", "others", "undo"]
"""Who made the changes that lead to a snapshot: the thread's work, somebody else, an undo."""

Conflicts = Literal["refuse", "keep", "overwrite"]
"""What is done about paths that the work and somebody else have changed."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a workspace. ``root`` is equal for equal states (of one set of ignore rules).

    ``at`` is Unix time in seconds; ``unkept`` are paths that are known to be there and whose
    content is not kept, since they are too large or may not be read. ``number`` grows with every
    snapshot of a store; ``by`` says who made the changes since the thread's one before it;
    ``rules`` is the digest of the ignore rules. One that ``opens`` was taken just before some work:
    what differs from it after a crash was made by that work.
    """

    id: str
    thread: str
    label: str
    root: str
    at: float
    unkept: tuple[str, ...] = ()
    by: ChangedBy = "work"
    rules: str = ""
    number: int = 0
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One path, relative to the workspace, that differs between two states."""

    path: str
    what: What


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot, and what has changed since the thread's last one that no undo has made."""

    snapshot: Snapshot
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Restored:
    """A workspace that was put back.

    ``before`` is the snapshot that was taken just before, which undoes this. ``exact`` says whether
    the workspace was looked at again and found as the snapshot has it; if not, ``left`` says which
    paths are not, each with the reason. ``kept`` are files that somebody else changed meanwhile and
    the work did not: they were left as they are.
    """

    snapshot: str
    before: str
    paths: tuple[str, ...]
    exact: bool
    left: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class SnapshotUnavailable(DarumaError):
    """Raised when a snapshot can not be taken or is not there; nothing has changed."""


class RestoreRefused(DarumaError):
    """Raised when putting back would undo what somebody else changed meanwhile; nothing changed.

    ``conflicts`` are the paths.
    """

    def __init__(self, message: str, conflicts: tuple[str, ...]) -> None:
        super().__init__(message)
        self.conflicts = conflicts


# --- Opening what lies beneath an open directory: never through a link, at any depth.

GONE: Final = (FileNotFoundError, NotADirectoryError)


@contextmanager
def workspace_opened(workspace: Path) -> Iterator[int]:
    """Open the workspace itself. Raises SnapshotUnavailable if that can not be done."""
    with told_of(workspace):
        top = os.open(workspace, DIRECTORY | os.O_CLOEXEC)
    with closing_fd(top):
        yield top


@contextmanager
def told_of(workspace: Path) -> Iterator[None]:
    """Turn what the system or a path's check says into a SnapshotUnavailable."""
    try:
        yield
    except OSError as error:
        said = f"{printable_path(str(workspace))}: {os.strerror(error.errno or 0)}"
        raise SnapshotUnavailable(f"{said}: no snapshot of it") from error
    except PathRefused as error:
        raise SnapshotUnavailable(str(error)) from error


def plain(path: str) -> Parts:
    """Return a path's pieces. Raises SnapshotUnavailable for one that is no name beneath a root."""
    parts = tuple(path.split("/"))
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise SnapshotUnavailable(f"{printable_path(path)}: no path beneath the workspace")
    return parts


def directory_opened(top: int, parts: Parts) -> AbstractContextManager[int]:
    """Open a directory beneath ``top``. Raises OSError."""
    return closing_fd(open_beneath(best_opener(), top, parts, DIRECTORY))
