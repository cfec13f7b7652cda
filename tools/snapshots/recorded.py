"""The rows of a store that name its snapshots."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.outcome import By, Snapshot, SnapshotUnavailable
from daruma.tools.snapshots.path_text import storable

_COLUMNS = "id, thread, label, root, at, unkept, made_by, rules, number, open"


class Recorded:
    """The snapshots of one workspace and thread in an open store."""

    def __init__(self, contents: Contents, workspace: bytes, thread: str) -> None:
        self.database = contents.database
        self.workspace = workspace
        self.thread = thread

    def add(
        self,
        label: str,
        by: By,
        *,
        root: str,
        rules: str,
        at: float,
        unkept: tuple[str, ...],
        opens: bool = False,
    ) -> Snapshot:
        """Record a state as the thread's newest."""
        label = storable(label)
        id_ = self._free_id(label)
        done = self.database.execute(
            "INSERT INTO snapshots (id, thread, workspace, made_by, label, root, rules, at,"
            " unkept, open) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(id_, self.thread, self.workspace, by, label),
                *(root, rules, at, json.dumps(unkept), opens),
            ),
        )
        number = done.lastrowid or 0
        return Snapshot(id_, self.thread, label, root, at, unkept, by, rules, number, opens)

    def _free_id(self, label: str) -> str:
        """Return an id that is the same whenever a thread does the same, and no other's here."""
        count = "SELECT count(*) FROM snapshots WHERE workspace = ? AND thread = ?"
        (number,) = self.database.execute(count, (self.workspace, self.thread)).fetchone()
        while True:
            told = f"{self.thread}\0{number}\0{label}".encode(errors="surrogateescape")
            id_ = hashlib.sha256(told).hexdigest()[:16]
            taken = self.database.execute("SELECT 1 FROM snapshots WHERE id = ?", (id_,)).fetchone()
            if taken is None:
                return id_
            number += 1

    def all(self) -> Iterator[Snapshot]:
        """Yield the thread's snapshots, oldest first."""
        rows = self.database.execute(
            f"SELECT {_COLUMNS} FROM snapshots WHERE workspace = ? AND thread = ? ORDER BY number",  # noqa: S608 - a constant
            (self.workspace, self.thread),
        )
        return map(_snapshot, rows)

    def last(self, *, undone: bool = True) -> Snapshot | None:
        """Return the thread's newest snapshot; without ``undone`` the newest that no undo made."""
        row = self.database.execute(
            f"SELECT {_COLUMNS} FROM snapshots WHERE workspace = ? AND thread = ?"  # noqa: S608 - a constant
            " AND (? OR made_by != 'undo') ORDER BY number DESC LIMIT 1",
            (self.workspace, self.thread, undone),
        ).fetchone()
        return _snapshot(row) if row else None

    def others_since(self, number: int) -> bool:
        """Whether another thread has a snapshot of the workspace that is newer than a number."""
        row = self.database.execute(
            "SELECT 1 FROM snapshots WHERE workspace = ? AND thread != ? AND number > ? LIMIT 1",
            (self.workspace, self.thread, number),
        ).fetchone()
        return row is not None

    def named(self, id_: str) -> Snapshot:
        """Return a snapshot of any thread. Raises SnapshotUnavailable if it is not kept."""
        row = self.database.execute(
            f"SELECT {_COLUMNS} FROM snapshots WHERE id = ?",  # noqa: S608 - a constant
            (id_,),
        ).fetchone()
        if row is None:
            raise SnapshotUnavailable(
                f"no snapshot {id_!r} of this workspace: it was taken elsewhere, or is too old"
            )
        return _snapshot(row)


def _snapshot(row: tuple[Any, ...]) -> Snapshot:
    id_, thread, label, root, at, unkept, by, rules, number, opens = row
    known = tuple(json.loads(unkept))
    return Snapshot(id_, thread, label, root, at, known, by, rules, number, bool(opens))
