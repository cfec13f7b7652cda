"""What is kept of a workspace: snapshots and their entries, and the database that holds them."""

import ctypes
import errno
import fcntl
import hashlib
import json
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from daruma.state.data_dir import data_dir
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


# --- Waiting until what was written is on the disk.


def sync_file_system(fd: int) -> None:
    """Wait until all that was written to the file system of an open file is on its disk."""
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None or syncfs(ctypes.c_int(fd)) != 0:
        os.sync()


# --- What an open store holds: contents and directories, each under a digest of what it is.

_WORTH_PACKING: Final = 256
"""Bytes; less is not made smaller."""

_SAMPLE: Final = 64 * 1024
"""Bytes of a large content that are tried first."""


class Contents:
    """What an open store holds."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep all that the block writes, or nothing where it raises."""
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self.database.in_transaction:  # a full disk has ended it already
                self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    def commit(self) -> None:
        """Make durable what was written so far, and go on."""
        self.database.execute("COMMIT")
        self.database.execute("BEGIN IMMEDIATE")

    def put_blob(self, data: bytes) -> str:
        """Keep a content and return its SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        self.put_packed([(digest, *packed(data))])
        return digest

    def put_packed(self, rows: Iterable[tuple[str, bool, bytes]]) -> None:
        """Keep contents that are packed already."""
        # One that is kept already is in use again: it must not be deleted as forgotten meanwhile.
        self.database.executemany(
            "INSERT INTO blobs (hash, packed, data) VALUES (?, ?, ?)"
            " ON CONFLICT (hash) DO UPDATE SET put_at = excluded.put_at",
            rows,
        )

    def has_blob(self, digest: str) -> bool:
        """Say whether a content is kept."""
        found = self.database.execute("SELECT 1 FROM blobs WHERE hash = ?", (digest,))
        return found.fetchone() is not None

    def blob(self, digest: str) -> bytes:
        """Return a content. Raises KeyError for one that is not kept."""
        query = "SELECT packed, data FROM blobs WHERE hash = ?"
        row = self.database.execute(query, (digest,)).fetchone()
        if row is None:
            raise KeyError(digest)
        data = zlib.decompress(row[1]) if row[0] else bytes(row[1])
        if hashlib.sha256(data).hexdigest() != digest:
            raise zlib.error
        return data

    def put_tree(self, tree: Tree) -> str:
        """Keep a directory and return its id, which is equal for equal directories only."""
        plain = [[name, e.kind, e.mode, e.content] for name, e in sorted(tree.items())]
        data = json.dumps(plain, separators=(",", ":")).encode()
        id_ = hashlib.sha256(data).hexdigest()
        self.database.execute("INSERT OR IGNORE INTO trees (id, data) VALUES (?, ?)", (id_, data))
        return id_

    def tree(self, id_: str) -> Tree:
        """Return a directory. Raises KeyError for one that is not kept."""
        row = self.database.execute("SELECT data FROM trees WHERE id = ?", (id_,)).fetchone()
        if row is None:
            raise KeyError(id_)
        return {name: Entry(*known) for name, *known in json.loads(row[0])}


def packed(data: bytes) -> tuple[bool, bytes]:
    """Return a content as it is kept: whether it was made smaller, and what is written."""
    if len(data) < _WORTH_PACKING:
        return False, data
    if len(data) > _SAMPLE and len(zlib.compress(data[:_SAMPLE], 1)) >= _SAMPLE:
        return False, data  # made small already, as pictures and archives are
    small = zlib.compress(data, 1)
    return (True, small) if len(small) < len(data) else (False, data)


# --- The tables of a store, and which version of them a file has.

VERSION: Final = 1
"""Grows whenever an older Daruma could not read the file any more."""

_TABLES: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    packed INTEGER NOT NULL,
    put_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
    data BLOB NOT NULL
);
CREATE TABLE trees (
    id TEXT PRIMARY KEY,
    put_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
    data BLOB NOT NULL
);
CREATE TABLE snapshots (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, thread TEXT NOT NULL,
    workspace BLOB NOT NULL, made_by TEXT NOT NULL, label TEXT NOT NULL, root TEXT NOT NULL,
    rules TEXT NOT NULL, at REAL NOT NULL, unkept TEXT NOT NULL,
    open INTEGER NOT NULL
);
CREATE INDEX snapshots_of_thread ON snapshots (workspace, thread, number);
CREATE TABLE statuses (
    workspace BLOB NOT NULL, path BLOB NOT NULL, status TEXT NOT NULL, hash TEXT NOT NULL,
    PRIMARY KEY (workspace, path)
) WITHOUT ROWID;
CREATE TABLE intents (workspace BLOB PRIMARY KEY, data TEXT NOT NULL);
PRAGMA user_version = {VERSION};
COMMIT;
"""


def prepare(database: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file. Raises SnapshotUnavailable for one of another version."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == 0:
        database.executescript(_TABLES)
    elif version != VERSION:
        raise SnapshotUnavailable(
            f"the snapshots in {path} have format {version}, and this Daruma knows {VERSION}:"
            " use the Daruma that wrote them, or move the file away to begin anew"
        )


# --- The store's errors in one line that says what to do.

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def explained_opening(path: Path) -> Iterator[None]:
    """Turn an OSError about the store's files into a SnapshotUnavailable."""
    try:
        yield
    except OSError as error:
        why = f"{os.strerror(error.errno or 0)}: make the folder writable, or set DARUMA_DATA_DIR"
        said = _no_room(path) if error.errno in _NO_ROOM else f"snapshots in {path}: {why}"
        raise SnapshotUnavailable(said) from error


@contextmanager
def explained_use(path: Path) -> Iterator[None]:
    """Turn an error of the database into a SnapshotUnavailable."""
    try:
        yield
    except sqlite3.Error as error:
        if "full" in str(error):
            raise SnapshotUnavailable(_no_room(path)) from error
        if isinstance(error, sqlite3.OperationalError):
            said = f"the snapshots in {path} can not be used: {error}"
            raise SnapshotUnavailable(said) from error
        raise damaged(path, str(error)) from error
    except zlib.error as error:
        raise damaged(path, "a content is not what was kept") from error


def damaged(path: Path, why: str) -> SnapshotUnavailable:
    """Return the error of a store that can not be relied on."""
    return SnapshotUnavailable(
        f"the snapshots in {path} are damaged ({why}): move the file away to begin anew"
    )


def _no_room(path: Path) -> str:
    return f"no room on the disk for snapshots in {path}: free some, or set DARUMA_DATA_DIR"


# --- In which file the snapshots of a workspace are kept.


def store_of(workspace: Path) -> Path:
    """Return where the snapshots of a workspace are kept.

    A team member's worktree shares the store of the workspace that it was made from.
    """
    home, place = data_dir(), Path(os.path.realpath(workspace))
    worktrees = Path(os.path.realpath(home / "worktrees"))
    if place.is_relative_to(worktrees) and place != worktrees:
        key = place.relative_to(worktrees).parts[0]
    else:
        key = hashlib.sha256(os.fsencode(place)).hexdigest()[:32]
    return home / "snapshots" / key / "store.sqlite3"


# --- Connections to stores that nobody uses just now, kept open for who comes next.
#
# SQLite folds its write-ahead log into the file when the last connection is closed, which waits for
# the disk three times. One that stays open waits once for each commit.

_MOST_IDLE: Final = 8

_idle: dict[Path, tuple[sqlite3.Connection, tuple[int, int]]] = {}
"""By the store's path: the connection, and device and inode of the file that it is of.

Who uses a connection has taken it out of here, so that no other thread can close it.
"""

_of_the_parent: list[object] = []


def _leave_to_the_parent() -> None:
    """A fork must neither use nor close the connections of the process that it comes from."""
    _of_the_parent.append(dict(_idle))
    _idle.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def _file_id(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _take_idle(path: Path) -> sqlite3.Connection | None:
    """Return a connection to the file that lies at a path now: another may have been put there."""
    database, file_id = _idle.pop(path, (None, None))
    with suppress(OSError):
        if database and _file_id(path) == file_id:
            return database
    if database:
        database.close()
    return None


# --- Where snapshots are kept: one database file for each workspace, outside of it.
#
# Contents and directories are kept once, under a digest of what they are, so that a snapshot costs
# what is new. Nothing of the user's git takes part.

PATIENCE: Final = 120.0
"""Seconds to wait for whoever uses the store: a restore of a very large tree takes less, and a
process that was stopped in the middle must not stop all others for ever."""

_AGAIN: Final = 0.02
_LONG_LOG: Final = 4 * 1024 * 1024
"""Bytes of the write-ahead log from which on it is folded into the file."""


class Store:
    """The contents, directories and notes of snapshots in one database file. All methods block."""

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def locked(self) -> Iterator[Contents]:
        """Open the store for this thread alone, among all threads and processes of the host.

        What is written is kept when the block ends, in one commit, all of it or, where it raises,
        nothing (but what `Contents.commit` kept before). Raises SnapshotUnavailable: no room, no
        permission, a damaged store, one of a newer version, one that another process does not let
        go of.
        """
        with self._alone(), explained_use(self.path):
            database = _take_idle(self.path) or self._open()
            try:
                prepare(database, self.path)
                contents = Contents(database)
                with contents.transaction():
                    yield contents
                with suppress(OSError, sqlite3.Error):  # all is durable without
                    if Path(f"{self.path}-wal").stat().st_size > _LONG_LOG:
                        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                _idle[self.path] = database, _file_id(self.path)
                while len(_idle) > _MOST_IDLE:
                    with suppress(KeyError, StopIteration, RuntimeError):  # another was first
                        _idle.pop(next(iter(_idle)))[0].close()
            except BaseException as error:
                if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                    self._take_back()  # the log's index is this connection's own, and so it is true
                database.close()
                raise

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with explained_opening(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            lock = os.open(self.path.with_suffix(".lock"), flags, 0o600)
        with closing_fd(lock):
            self._wait_for(lock)
            yield

    def _wait_for(self, lock: int) -> None:
        end = time.monotonic() + self.patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise SnapshotUnavailable(
                        f"the snapshots in {self.path} have been in use by another process for"
                        f" {self.patience:g} s: let it go on or end it, and try again"
                    ) from None
                time.sleep(_AGAIN)
            else:
                return

    def _take_back(self) -> None:
        """Give back the room of what a full disk has cut short, at the end of the log.

        SQLite would write over it some day. The index of the log holds the size of a page, and how
        many of them are committed: see "WAL-Index Header" in SQLite's documentation.
        """
        with suppress(OSError, struct.error):
            head = Path(f"{self.path}-shm").read_bytes()[12:20]
            is_made, page, committed = struct.unpack("=BxHI", head)
            if is_made:  # else nobody has read the log yet, and what is committed is not known
                os.truncate(f"{self.path}-wal", 32 + committed * (24 + page))

    def _open(self) -> sqlite3.Connection:
        with explained_opening(self.path):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(
            self.path, timeout=30, isolation_level=None, check_same_thread=False
        )
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version in {0, VERSION}:  # one of another version is not to be touched
                if version == 0:
                    database.execute("PRAGMA auto_vacuum = INCREMENTAL")
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = FULL")
                database.execute("PRAGMA wal_autocheckpoint = 0")
        except BaseException:
            database.close()
            raise
        return database
