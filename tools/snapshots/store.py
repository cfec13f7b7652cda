"""Where snapshots are kept: one database file for each workspace, outside of it.

Contents and directories are kept once, under a digest of what they are, so that a snapshot costs
what is new. Nothing of the user's git takes part.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.schema import prepare
from daruma.tools.snapshots.store_errors import explained_opening, explained_use, in_use

PATIENCE: Final = 120.0
"""Seconds to wait for whoever uses the store: a restore of a very large tree takes less, and a
process that was stopped in the middle must not stop all others for ever."""

_AGAIN: Final = 0.02


class Store:
    """The contents, directories and notes of snapshots in one database file. All methods block."""

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self.path = path
        self.patience = patience

    @contextmanager
    def locked(self) -> Iterator[Contents]:
        """Open the store for this thread alone, among all threads and processes of the host.

        What is written is kept when the block ends, all of it or, where it raises, nothing (but
        what `Contents.commit` kept before). Raises SnapshotUnavailable: no room, no permission, a
        damaged store, one of a newer version, one that another process does not let go of.
        """
        with self._alone(), explained_use(self.path), closing(self._open()) as database:
            prepare(database, self.path)
            contents = Contents(database)
            with contents.transaction():
                yield contents

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with explained_opening(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            lock = os.open(self.path.with_suffix(".lock"), flags, 0o600)
        try:
            self._wait_for(lock)
            yield
        finally:
            os.close(lock)

    def _wait_for(self, lock: int) -> None:
        end = time.monotonic() + self.patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise in_use(self.path, self.patience) from None
                time.sleep(_AGAIN)
            else:
                return

    def _open(self) -> sqlite3.Connection:
        with explained_opening(self.path):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return sqlite3.connect(self.path, timeout=30, isolation_level=None)
