"""The rows of a store: snapshots, as one thread takes them, restores begun, and pruning them."""

import hashlib
import json
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from daruma.tools.files import Parts
from daruma.tools.snapshots._ignore import Rules, decoded, frozen
from daruma.tools.snapshots._states import Reader, Statuses, Walk, as_changes, between, noted
from daruma.tools.snapshots._store import (
    ChangedBy,
    Contents,
    Entry,
    Snapshot,
    SnapshotUnavailable,
    Store,
    Taken,
    packed,
    storable,
    store_of,
    told_of,
)

# --- Keeping many contents at once, made smaller on another processor meanwhile.

BATCH: Final = 1024 * 1024
"""Bytes that are packed together: one small file alone is not worth handing over."""

WAITING: Final = 16 * BATCH
"""Bytes that wait to be written, at most, but for the last batch: one file may be larger."""

Row: TypeAlias = tuple[str, bool, bytes]


class Packing:
    """Takes contents and writes them into a store, batch by batch."""

    def __init__(self, contents: Contents, pool: ThreadPoolExecutor) -> None:
        self._contents = contents
        self._pool = pool
        self._batch: dict[str, bytes] = {}
        self._size = 0
        self._packed: deque[tuple[int, Future[list[Row]]]] = deque()
        self._waiting = 0
        self._put: set[str] = set()

    def put(self, data: bytes) -> str:
        """Take a content and return its SHA-256; it is in the store when the block has ended."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._put and not self._contents.has_blob(digest):
            self._put.add(digest)
            self._batch[digest] = data
            self._size += len(data)
            if self._size >= BATCH:
                self._hand_over()
        return digest

    def finish(self) -> None:
        """Write what is waiting; no thread is started where that is nothing."""
        if self._batch:
            self._hand_over()
        while self._packed:
            self._write_one()

    def _hand_over(self) -> None:
        batch = self._batch
        rows = self._pool.submit(lambda: [(key, *packed(each)) for key, each in batch.items()])
        self._packed.append((self._size, rows))
        self._waiting += self._size
        self._batch, self._size = {}, 0
        while self._waiting > WAITING:
            self._write_one()

    def _write_one(self) -> None:
        size, rows = self._packed.popleft()
        self._contents.put_packed(rows.result())
        self._waiting -= size


@contextmanager
def packing(contents: Contents) -> Iterator[Packing]:
    """Keep many contents in an open store; all are there when the block ends."""
    with ThreadPoolExecutor(2, thread_name_prefix="packing") as pool:
        packing = Packing(contents, pool)
        yield packing
        packing.finish()


# --- The rows of a store that name its snapshots.

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
        by: ChangedBy,
        root: str,
        rules: str,
        at: float,
        unkept: tuple[str, ...],
        *,
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
        """Return an id that is the same whenever a thread does the same, and no other's here.

        What tells threads of one name apart, behind a NUL, is no part of it.
        """
        count = "SELECT count(*) FROM snapshots WHERE workspace = ? AND thread = ?"
        (number,) = self.database.execute(count, (self.workspace, self.thread)).fetchone()
        while True:
            thread = self.thread.partition("\0")[0]
            told = f"{thread}\0{number}\0{label}".encode(errors="surrogateescape")
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


# --- Reading a workspace that is open, and recording what it holds as a snapshot of one thread.


@dataclass(eq=False)
class Recorder:
    """Records what a workspace holds, in a store and a workspace that are open already."""

    workspace: Path
    thread: str
    store: Store
    _: KW_ONLY
    exclude: Sequence[str] = ()
    now: Callable[[], float] = time.time
    step: Callable[[], None] = lambda: None
    way: type[Any] | None = None

    def taken(
        self,
        contents: Contents,
        top: int,
        label: str,
        *,
        by: ChangedBy,
        fresh: bool = False,
        opens: bool = False,
    ) -> Taken:
        """Do what `take` does in a store and a workspace that are open."""
        recorded = self.recorded(contents)
        last, base = recorded.last(), recorded.last(undone=False)
        interrupted = by == "others" and last is not None and last.opens
        by = "work" if interrupted else by
        if last is None or fresh:
            rules = noted(self.workspace, frozen(top, self.workspace, self.exclude))
        else:  # those of the thread's last snapshot
            rules = decoded(contents.blob(last.rules))
        root, unkept = self.seen(contents, top, rules)
        digest = contents.put_blob(rules.encoded())
        now, more = self.now(), tuple(unkept)
        snapshot = recorded.add(label, by, root, digest, now, more, opens=opens)
        if base is None or interrupted:
            return Taken(snapshot)
        return Taken(snapshot, as_changes(between(contents, base, snapshot)))

    def recorded(self, contents: Contents, thread: str | None = None) -> Recorded:
        """Return the rows of this thread's snapshots in an open store, or of another's."""
        return Recorded(contents, self.place(), thread or self.thread)

    def place(self) -> bytes:
        """Return where the workspace really is."""
        return os.fsencode(os.path.realpath(self.workspace))

    def seen(self, contents: Contents, top: int, rules: Rules) -> tuple[str, list[str]]:
        """Keep what an open workspace holds; return the root's id and what could not be kept."""
        statuses = Statuses(contents, self.place())
        with told_of(self.workspace), packing(contents) as packed:
            walk = Walk(top, rules, Reader(packed.put, statuses=statuses))
            root = walk.root(contents.put_tree)
        statuses.save()
        return root, walk.unkept


# --- What a restore is about to do, on record before it does anything.


@dataclass(frozen=True, slots=True)
class Intent:
    """One restore, open until its end was looked at.

    ``target`` and ``before`` are ids of snapshots (no target: single paths that were asked for).
    ``left`` and ``kept`` are what was decided to leave alone, by path.
    """

    id: str
    thread: str
    label: str
    by: ChangedBy
    target: str | None
    before: str
    goal: dict[Parts, Entry | None]
    left: dict[Parts, str]
    kept: frozenset[Parts]


def open_intent(database: sqlite3.Connection, workspace: bytes) -> Intent | None:
    """Return the restore of a workspace that has not come to its end, if there is one."""
    row = database.execute("SELECT data FROM intents WHERE workspace = ?", (workspace,)).fetchone()
    return _read(row[0]) if row else None


def open_intents(database: sqlite3.Connection) -> list[Intent]:
    """Return all restores that have not come to their end, those of gone workspaces too."""
    return [_read(data) for (data,) in database.execute("SELECT data FROM intents")]


def write_intent(database: sqlite3.Connection, workspace: bytes, intent: Intent) -> None:
    """Record a restore; there is one at a time."""
    plain = {name: getattr(intent, name) for name in Intent.__slots__}
    goal = [[path, asdict(entry) if entry else None] for path, entry in intent.goal.items()]
    plain |= {"goal": goal, "left": [*intent.left.items()], "kept": [*intent.kept]}
    database.execute("INSERT INTO intents VALUES (?, ?)", (workspace, json.dumps(plain)))


def close_intent(database: sqlite3.Connection, workspace: bytes) -> None:
    """Record that a restore has come to its end."""
    database.execute("DELETE FROM intents WHERE workspace = ?", (workspace,))


def _read(data: str) -> Intent:
    plain = json.loads(data)
    goal = {tuple(path): Entry(**entry) if entry else None for path, entry in plain["goal"]}
    left = {tuple(path): reason for path, reason in plain["left"]}
    kept = frozenset(tuple(path) for path in plain["kept"])
    return Intent(**{**plain, "goal": goal, "left": left, "kept": kept})


# --- Deleting old snapshots, and all that only they held.

GRACE: Final = 3600
"""Seconds for which contents stay that no snapshot holds: somebody may be about to use them."""


def prune(contents: Contents, *, before: float, keep: Collection[str] = ()) -> int:
    """Delete snapshots taken before a Unix time, but those of ``keep``; return how many.

    All of a thread that are newer than one that stays do so too: they tell who changed what since.
    What a restore needs that was cut short stays as well.
    """
    database = contents.database
    intents = open_intents(database)
    staying = {*keep, *(id_ for intent in intents for id_ in (intent.before, intent.target))}
    query = "SELECT id, at < ?, workspace, thread FROM snapshots ORDER BY number"
    rows = database.execute(query, (before,))
    gone: list[tuple[str]] = []
    held: set[tuple[bytes, str]] = set()
    for id_, old, *whose in rows.fetchall():
        if tuple(whose) in held or not old or id_ in staying:
            held.add((whose[0], whose[1]))
        else:
            gone.append((id_,))
    database.executemany("DELETE FROM snapshots WHERE id = ?", gone)
    if gone:
        _sweep(contents, intents)
    return len(gone)


def delete_snapshots(workspace: Path, thread: str) -> None:
    """Delete all snapshots of a thread, if there are any. Those of a restore cut short stay."""
    if (path := store_of(workspace)).exists():
        with Store(path).locked() as contents:
            intents = open_intents(contents.database)
            if all(intent.thread != thread for intent in intents):
                gone = "DELETE FROM snapshots WHERE thread = ?"
                if contents.database.execute(gone, (thread,)).rowcount:
                    _sweep(contents, intents)


def _sweep(contents: Contents, intents: Sequence[Intent]) -> None:
    database = contents.database
    goals = (entry for intent in intents for entry in intent.goal.values())
    needed = {each.content for each in goals if each}
    roots = {root for (root,) in database.execute("SELECT root FROM snapshots")}
    rules = {digest for (digest,) in database.execute("SELECT rules FROM snapshots")}
    trees, blobs = _reached(contents, roots)
    _delete(contents, "trees", "id", trees)
    _delete(contents, "blobs", "hash", blobs | rules | needed)
    database.execute(
        "DELETE FROM statuses WHERE hash NOT IN (SELECT hash FROM blobs)"
        " OR workspace NOT IN (SELECT workspace FROM snapshots)"
    )
    # As one statement of Python's it would free a single page.
    database.execute("COMMIT")
    database.executescript("PRAGMA incremental_vacuum; BEGIN IMMEDIATE")


def _reached(contents: Contents, roots: set[str]) -> tuple[set[str], set[str]]:
    """Return the ids of all directories and contents that lie beneath the roots."""
    trees, waiting = set(roots), [*roots]
    blobs: set[str] = set()
    while waiting:
        for entry in contents.tree(waiting.pop()).values():
            if entry.kind == "file":
                blobs.add(entry.content)
            elif entry.kind == "directory" and entry.content and entry.content not in trees:
                trees.add(entry.content)
                waiting.append(entry.content)
    return trees, blobs


def _delete(contents: Contents, table: str, key: str, live: set[str]) -> None:
    rows = contents.database.execute(
        f"SELECT {key} FROM {table} WHERE put_at < strftime('%s', 'now') - ?",  # noqa: S608 - constants
        (GRACE,),
    )
    dead = [row for row in rows.fetchall() if row[0] not in live]
    contents.database.executemany(f"DELETE FROM {table} WHERE {key} = ?", dead)  # noqa: S608 - constants
