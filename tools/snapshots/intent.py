"""What a restore is about to do, on record before it does anything."""

import json
import sqlite3
from dataclasses import asdict, dataclass
from typing import Final

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.outcome import By

_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS intents (workspace BLOB PRIMARY KEY, data TEXT NOT NULL)"
)


@dataclass(frozen=True, slots=True)
class Intent:
    """One restore, open until its end was looked at.

    ``target`` and ``before`` are ids of snapshots (no target: single paths that were asked for).
    ``left`` and ``kept`` are what was decided to leave alone, by path.
    """

    id: str
    thread: str
    label: str
    by: By
    target: str | None
    before: str
    goal: dict[Parts, Entry | None]
    left: dict[Parts, str]
    kept: frozenset[Parts]


def open_intent(database: sqlite3.Connection, workspace: bytes) -> Intent | None:
    """Return the restore of a workspace that has not come to its end, if there is one."""
    if not _any(database):
        return None
    row = database.execute("SELECT data FROM intents WHERE workspace = ?", (workspace,)).fetchone()
    return _read(row[0]) if row else None


def open_intents(database: sqlite3.Connection) -> list[Intent]:
    """Return all restores that have not come to their end, those of gone workspaces too."""
    rows = database.execute("SELECT data FROM intents").fetchall() if _any(database) else []
    return [_read(data) for (data,) in rows]


def write_intent(database: sqlite3.Connection, workspace: bytes, intent: Intent) -> None:
    """Record a restore; there is one at a time."""
    database.execute(_TABLE)
    database.execute("INSERT INTO intents VALUES (?, ?)", (workspace, _written(intent)))


def close_intent(database: sqlite3.Connection, workspace: bytes) -> None:
    """Record that a restore has come to its end."""
    database.execute("DELETE FROM intents WHERE workspace = ?", (workspace,))


def _any(database: sqlite3.Connection) -> bool:
    sql = "SELECT 1 FROM sqlite_master WHERE name = 'intents'"
    return database.execute(sql).fetchone() is not None


def _written(intent: Intent) -> str:
    plain = {name: getattr(intent, name) for name in Intent.__slots__}
    goal = [[path, asdict(entry) if entry else None] for path, entry in intent.goal.items()]
    return json.dumps(
        plain | {"goal": goal, "left": [*intent.left.items()], "kept": [*intent.kept]}
    )


def _read(data: str) -> Intent:
    plain = json.loads(data)
    goal = {tuple(path): Entry(**entry) if entry else None for path, entry in plain["goal"]}
    left = {tuple(path): reason for path, reason in plain["left"]}
    kept = frozenset(tuple(path) for path in plain["kept"])
    return Intent(**{**plain, "goal": goal, "left": left, "kept": kept})
