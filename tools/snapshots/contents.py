"""What an open store holds: contents and directories, each under a digest of what it is."""

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from daruma.tools.snapshots.entry import Entry, Tree

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
        row = self.database.execute(
            "SELECT packed, data FROM blobs WHERE hash = ?", (digest,)
        ).fetchone()
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
        return {
            name: Entry(kind, mode, content) for name, kind, mode, content in json.loads(row[0])
        }


def packed(data: bytes) -> tuple[bool, bytes]:
    """Return a content as it is kept: whether it was made smaller, and what is written."""
    if len(data) < _WORTH_PACKING:
        return False, data
    if len(data) > _SAMPLE and len(zlib.compress(data[:_SAMPLE], 1)) >= _SAMPLE:
        return False, data  # made small already, as pictures and archives are
    small = zlib.compress(data, 1)
    return (True, small) if len(small) < len(data) else (False, data)
