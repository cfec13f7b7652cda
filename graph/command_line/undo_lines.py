"""What is said of putting files back: what will change, what has, and what is in the way."""

import shlex
from collections.abc import Sequence
from typing import Any

from daruma.graph.command_line.paper import Line, Mark
from daruma.graph.command_line.printable import one_line
from daruma.graph.command_line.rollback_lines import left_lines, named_lines
from daruma.graph.undoing import Place
from daruma.tools.snapshots.outcome import Change, Restored, RestoreRefused

_SHOWN = 20
"""Files that are named; of more, their number is told."""

_MARKS: dict[str, Mark] = {"added": "plus", "changed": "note", "deleted": "minus"}


def preview_lines(place: Place, changes: Sequence[Change]) -> list[Line]:
    """Say what putting back would do to which file."""
    head = Line("head", f"Back to {name_of(place)}", place.workspace)
    if not changes:
        return [head, Line("note", "nothing is to be put back")]
    shown = [_line(each) for each in changes[:_SHOWN]]
    more = len(changes) - len(shown)
    rest = [Line("note", f"and {more} more")] if more else []
    return [head, *shown, *rest]


def name_of(place: Place) -> str:
    """Return what a state is called."""
    if place.savepoint is None:
        return f"snapshot {place.snapshot}"
    return f"savepoint {place.savepoint.id}"


def restored_lines(thread: str, restored: Restored) -> list[Line]:
    """Say what was put back, what was not, and how to undo that."""
    files = "1 path was" if len(restored.paths) == 1 else f"{len(restored.paths)} paths were"
    exact = restored.exact and not restored.left
    how = "looked at again, and exact" if exact else "not all is as it was"
    kept = [Line("note", "left alone, since only somebody else changed them:")]
    kept += named_lines(restored.kept, len(restored.kept))
    again = f"daruma undo {shlex.quote(thread)} --to {restored.before}"
    return [
        Line("ok" if exact else "bad", f"{files} put back", how),
        *left_lines(restored.left),
        *(kept if restored.kept else ()),
        Line("line", again, "undoes this"),
    ]


def refused_lines(thread: str, to: str | None, refused: RestoreRefused) -> list[Line]:
    """Say which files stand in the way, and what can be done about them."""
    command = f"daruma undo {shlex.quote(thread)}" + (f" --to {shlex.quote(to)}" if to else "")
    return [
        Line("bad", "nothing was put back: the work and somebody else changed the same files"),
        *(Line("note", one_line(path, 300)) for path in refused.conflicts),
        Line("line", f"{command} --keep", "leaves these files as they are"),
        Line("line", f"{command} --overwrite", "puts them back too; that can be undone"),
    ]


def restored_values(place: Place, restored: Restored) -> dict[str, Any]:
    """Return what was put back as JSON-able values."""
    return {
        "thread": place.thread,
        "workspace": place.workspace,
        "savepoint": place.savepoint.id if place.savepoint else None,
        "snapshot": restored.snapshot,
        "before": restored.before,
        "paths": list(restored.paths),
        "exact": restored.exact,
        "left": list(restored.left),
        "kept": list(restored.kept),
    }


def _line(change: Change) -> Line:
    return Line(_MARKS[change.what], one_line(change.path, 300), change.what)
