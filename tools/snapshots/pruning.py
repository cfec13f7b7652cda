"""Deleting old snapshots, and all that only they held."""

from collections.abc import Collection
from typing import Final

from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.intent import open_intents

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
    rows = database.execute(
        "SELECT id, at < ?, workspace, thread FROM snapshots ORDER BY number", (before,)
    )
    gone: list[tuple[str]] = []
    held: set[tuple[bytes, str]] = set()
    for id_, old, *whose in rows.fetchall():
        if tuple(whose) in held or not old or id_ in staying:
            held.add((whose[0], whose[1]))
        else:
            gone.append((id_,))
    database.executemany("DELETE FROM snapshots WHERE id = ?", gone)
    if gone:
        goals = (entry for intent in intents for entry in intent.goal.values())
        _sweep(contents, {each.content for each in goals if each})
    return len(gone)


def forget(contents: Contents, thread: str) -> int:
    """Delete all snapshots of a thread; return how many. Those of a restore cut short stay."""
    database = contents.database
    intents = open_intents(database)
    if any(intent.thread == thread for intent in intents):
        return 0
    gone = database.execute("DELETE FROM snapshots WHERE thread = ?", (thread,)).rowcount
    if gone:
        goals = (entry for intent in intents for entry in intent.goal.values())
        _sweep(contents, {each.content for each in goals if each})
    return gone


def _sweep(contents: Contents, needed: set[str]) -> None:
    database = contents.database
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
