"""What comes of snapshots: one taken, files that changed, a workspace put back."""

from dataclasses import dataclass
from typing import Literal

from daruma.state.errors import DarumaError

What = Literal["added", "changed", "deleted"]

By = Literal["work", "others", "undo"]
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
    by: By = "work"
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
