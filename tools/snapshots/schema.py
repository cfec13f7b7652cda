"""The tables of a store, and which version of them a file has."""

import sqlite3
from pathlib import Path
from typing import Final

from daruma.tools.snapshots.outcome import SnapshotUnavailable

VERSION: Final = 1
"""Grows whenever an older Daruma could not read the file any more."""

_TABLES: Final = f"""
PRAGMA auto_vacuum = INCREMENTAL;
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
PRAGMA user_version = {VERSION};
COMMIT;
"""


def prepare(database: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file. Raises SnapshotUnavailable for one of another version."""
    # The lock of the store lets in one at a time; a rollback journal writes new pages once, a
    # write-ahead log twice.
    database.execute("PRAGMA journal_mode = TRUNCATE")
    database.execute("PRAGMA synchronous = FULL")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == 0:
        database.executescript(_TABLES)
    elif version != VERSION:
        raise SnapshotUnavailable(
            f"the snapshots in {path} have format {version}, and this Daruma knows {VERSION}:"
            " use the Daruma that wrote them, or move the file away to begin anew"
        )
