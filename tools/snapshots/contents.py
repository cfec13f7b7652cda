"""What an open store holds: contents and directories, each under a digest of what it is."""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from daruma.tools.snapshots.entry import Entry, Tree

_WORTH_PACKING: Final = 256
"""Bytes; less is not made smaller."""


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
