"""Savepoints as people read them: when, before or after what, and how to go back there."""

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from daruma.graph.command_line.paper import Line
from daruma.graph.command_line.printable import one_line
from daruma.graph.command_line.savepoint_titles import Titles
from daruma.state.savepoint import Savepoint


def savepoint_lines(
    thread: str, savepoints: Sequence[Savepoint], titles: Titles, *, snapshots: bool = False
) -> list[Line]:
    """Return a line for each savepoint, and one that says how to go back to one of them.

    ``snapshots`` asks for the ids of the snapshots too.
    """
    if not savepoints:
        return [Line("note", "there are none: no task of this thread had a workspace")]
    lines = [_line(each, titles, snapshots=snapshots) for each in savepoints]
    return [*lines, Line("line", f"daruma undo {shlex.quote(thread)} --to ID", "goes there")]


def savepoint_values(savepoints: Sequence[Savepoint], titles: Titles) -> list[dict[str, Any]]:
    """Return savepoints as JSON-able values; ``at`` is Unix time in seconds."""
    return [
        {
            "id": each.id,
            "when": each.when,
            "task_id": each.task_id,
            "phase_id": each.phase_id,
            "what": titles.get((each.task_id, each.phase_id)),
            "workspace": each.workspace,
            "snapshot": each.snapshot,
            "note": each.note,
            "at": each.at,
        }
        for each in savepoints
    ]


def _line(savepoint: Savepoint, titles: Titles, *, snapshots: bool) -> Line:
    which = f"phase {savepoint.phase_id}" if savepoint.phase_id else f"task {savepoint.task_id}"
    title = one_line(titles.get((savepoint.task_id, savepoint.phase_id), which), 60)
    when = "after" if savepoint.when == "done" else "before"
    at = datetime.fromtimestamp(savepoint.at, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    kept = savepoint.snapshot if snapshots else None
    tail = " · ".join(one_line(part) for part in (at, kept, savepoint.note) if part)
    return Line("ok" if savepoint.snapshot else "bad", f"{savepoint.id}  {when} {title}", tail)
