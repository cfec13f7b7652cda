"""Where snapshots are kept: one database file for each workspace, outside of it.

Contents and directories are kept once, under a digest of what they are, so that a snapshot costs
what is new. Nothing of the user's git takes part.
"""

import fcntl
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from daruma.tools.snapshots.entry import Entry, Tree

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS blobs (hash TEXT PRIMARY KEY, packed INTEGER, data BLOB) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS trees (id TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID;
"""

_WORTH_PACKING: Final = 256
"""Bytes; less is not made smaller."""


class Store:
    """The contents, directories and notes of snapshots in one database file. All methods block."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator["Contents"]:
        """Open the store for this thread alone, among all threads and processes of the host.

        What is written is kept when the block ends, all of it or, where it raises, nothing.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as database:
                self.path.chmod(0o600)
                database.executescript(f"PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;{_TABLES}")
                contents = Contents(database)
                with contents.transaction():
                    yield contents
        finally:
            os.close(lock)


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
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    def put_blob(self, data: bytes) -> str:
        """Keep a content and return its SHA-256."""
        digest = hashlib.sha256(data).hexdigest()
        small = zlib.compress(data, 1) if len(data) >= _WORTH_PACKING else data
        packed = len(small) < len(data)
        self.database.execute(
            "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?)",
            (digest, packed, small if packed else data),
        )
        return digest

    def blob(self, digest: str) -> bytes:
        """Return a content. Raises KeyError for one that is not kept."""
        row = self.database.execute(
            "SELECT packed, data FROM blobs WHERE hash = ?", (digest,)
        ).fetchone()
        if row is None:
            raise KeyError(digest)
        return zlib.decompress(row[1]) if row[0] else bytes(row[1])

    def put_tree(self, tree: Tree) -> str:
        """Keep a directory and return its id, which is equal for equal directories only."""
        plain = [[name, e.kind, e.mode, e.content] for name, e in sorted(tree.items())]
        data = json.dumps(plain, separators=(",", ":")).encode()
        id_ = hashlib.sha256(data).hexdigest()
        self.database.execute("INSERT OR IGNORE INTO trees VALUES (?, ?)", (id_, data))
        return id_

    def tree(self, id_: str) -> Tree:
        """Return a directory. Raises KeyError for one that is not kept."""
        row = self.database.execute("SELECT data FROM trees WHERE id = ?", (id_,)).fetchone()
        if row is None:
            raise KeyError(id_)
        return {
            name: Entry(kind, mode, content) for name, kind, mode, content in json.loads(row[0])
        }
