"""Savepoints of the workspace, and files that others changed (RO-03, RO-07)."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from daruma.state.record import record

# --- Savepoints: the states of the workspace that a thread can go back to (RO-03, RO-07).

When = Literal["task", "phase", "done"]
"""Before a task, before a phase, after a phase."""


@record
class Savepoint:
    """One state of the workspace, and the snapshot that holds it.

    ``id`` is short, for people: ``2`` before the second task of the thread, ``2/p1`` before its
    phase ``p1``, ``2/p1/done`` after it. ``snapshot`` is None where none could be taken; then
    ``note`` says why. ``undo`` is the snapshot that holds what was rolled back to come here, if
    anything was. ``at`` is Unix time in seconds.
    """

    id: str
    task_id: str
    phase_id: str | None = None
    when: When
    workspace: str
    snapshot: str | None
    note: str = ""
    undo: str | None = None
    at: float
    schema_version: int = 1


def savepoint_id(task_id: str, phase_id: str | None, when: When) -> str:
    """Return the short name of a savepoint; a task's id ends with its number on the thread."""
    number = task_id.rpartition("/")[2]
    parts = (number, phase_id, "done" if when == "done" else None)
    return "/".join(part for part in parts if part)


def latest(savepoints: Iterable[Savepoint], id_: str) -> Savepoint | None:
    """Return the savepoint of an id: where one was taken again, the one that was taken last."""
    return next((each for each in reversed([*savepoints]) if each.id == id_), None)


def newest_of_each(savepoints: Iterable[Savepoint]) -> tuple[Savepoint, ...]:
    """Return one savepoint of each id, the one that was taken last, in the order of time."""
    newest = {each.id: each for each in savepoints}
    return tuple(sorted(newest.values(), key=lambda each: each.at))


def append_savepoints(
    savepoints: list[Savepoint], writes: Sequence[list[Savepoint]]
) -> list[Savepoint]:
    """Reduce the ``savepoints`` channel: history only ever grows."""
    return [*savepoints, *(each for write in writes for each in write)]


# --- Files of the workspace that somebody else changed behind a task's back.

MOST: Final = 100
"""Paths that are kept on record; of more, the first."""


@record
class Drifted:
    """What was found changed when a task began or was taken up again: at most ``MOST`` paths."""

    task_id: str
    paths: tuple[str, ...]
    schema_version: int = 1


def reduce_drifted(known: Drifted | None, write: Drifted | None) -> Drifted | None:
    """Reduce the ``drifted`` channel: paths of one task add up, another task begins anew."""
    if known is None or write is None or known.task_id != write.task_id:
        return write or known
    paths = tuple(dict.fromkeys((*known.paths, *write.paths)))
    return Drifted(task_id=write.task_id, paths=paths[:MOST])
