"""The talk around putting files back."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from daruma.graph.command_line._messages import one_line
from daruma.graph.command_line._output import Line, Mark, Paper, Pasted, agrees
from daruma.graph.command_line._thread_view import ThreadView, savepoint_lines, savepoint_values
from daruma.graph.history import Place, UndoRefused, snapshots_of
from daruma.graph.timeline import first_paths
from daruma.state.text import counted, on_thread, pasted
from daruma.tools.snapshots import Change, Conflicts, Restored, RestoreRefused, preview_restore

# --- What is said of putting files back: what will change, what has, and what is in the way.

_SHOWN = 20
"""Files that are named; of more, their number is told."""

_MARKS: dict[str, Mark] = {"added": "plus", "changed": "note", "deleted": "minus"}


def preview_lines(place: Place, changes: Sequence[Change]) -> list[Line]:
    """Say what putting back would do to which file."""
    kept = f"savepoint {place.savepoint.id}" if place.savepoint else f"snapshot {place.snapshot}"
    head = Line("head", f"Back to {kept}", place.workspace)
    if not changes:
        return [head, Line("note", "nothing is to be put back")]
    shown = [Line(_MARKS[e.what], one_line(e.path, 300), e.what) for e in changes[:_SHOWN]]
    more = len(changes) - len(shown)
    rest = [Line("note", f"and {more} more")] if more else []
    return [head, *shown, *rest]


def restored_lines(thread: str, restored: Restored) -> list[Line]:
    """Say what was put back, what was not, and how to undo that."""
    files = (
        f"{counted(len(restored.paths), 'path')} {'was' if len(restored.paths) == 1 else 'were'}"
    )
    exact = restored.exact and not restored.left
    done: Mark = "ok" if restored.paths else "note"
    looked = "looked at again, and exact" if exact else ""
    unlike = [] if exact else [Line("bad", "not all is as it was")]
    kept = [Line("note", "left alone, since only somebody else changed them:")]
    kept += [Line("note", one_line(each)) for each in first_paths(restored.kept)]
    again = on_thread("undo", thread, f"--to {restored.before}")
    return [
        Line(done, f"{files} put back", looked),
        *unlike,
        *(Line("bad", one_line(each, 300)) for each in first_paths(restored.left, most=_SHOWN)),
        *(kept if restored.kept else ()),
        Line("note", "not looked at: what git ignores, and what rollback.exclude names"),
        Pasted("line", again, "undoes this"),
    ]


def refused_lines(thread: str, to: str | None, refused: RestoreRefused) -> list[Line]:
    """Say which files stand in the way, and what can be done about them."""
    at = f"--to {pasted(to)} " if to else ""
    keep, overwrite = (on_thread("undo", thread, f"{at}--{how}") for how in ("keep", "overwrite"))
    return [
        Line("bad", "nothing was put back: the work and somebody else changed the same files"),
        *(Line("note", one_line(path, 300)) for path in refused.conflicts),
        Pasted("line", keep, "leaves these files as they are"),
        Pasted("line", overwrite, "puts them back too; that can be undone"),
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


# --- The talk around putting files back: say what will change, ask, do it, and say what came of it.

EXACT, INEXACT, REFUSED = 0, 1, 2
"""Exit codes: all is as it was, not all of it is, nothing was changed."""


@dataclass(frozen=True)
class UndoTalk:
    """How undoing is talked about: ``yes`` does not ask, ``json`` leaves standard output to it.

    ``read`` asks a person; None where there is nobody.
    """

    paper: Paper
    yes: bool = False
    json: bool = False
    read: Callable[[str], str] | None = None

    def tell(self, view: ThreadView) -> None:
        """List the states that can be gone back to."""
        kept = view.savepoints
        if self.json:
            self._print({"thread": view.thread, "savepoints": savepoint_values(kept, view.titles)})
        else:
            self.paper.put(*savepoint_lines(view.thread, kept, view.titles, snapshots=True))

    def hold(self, place: Place, conflicts: Conflicts, to: str | None) -> int:
        """Put files back, if that is wanted, and return the exit code.

        Raises :class:`~daruma.graph.history.UndoRefused` where nobody can be asked.
        """
        snapshots = snapshots_of(place.workspace, place.thread)
        foreseen = preview_restore(snapshots, place.snapshot, conflicts=conflicts)
        self.paper.put(*preview_lines(place, foreseen.changes))
        refused = foreseen.conflicts and conflicts == "refuse"  # then there is nothing to ask
        if foreseen.changes and not refused and not self.yes and not self._wanted():
            self.paper.put(Line("note", "nothing was put back"))
            return REFUSED
        try:
            restored = snapshots.restore(place.snapshot, conflicts=conflicts)
        except RestoreRefused as refusal:
            self.paper.put(*refused_lines(place.thread, to, refusal))
            told = {"refused": str(refusal), "conflicts": list(refusal.conflicts)}
            self._print({"thread": place.thread, **told})
            return REFUSED
        self.paper.put(*restored_lines(place.thread, restored))
        self._print(restored_values(place, restored))
        return EXACT if restored.exact and not restored.left else INEXACT

    def _wanted(self) -> bool:
        if self.read is None:
            raise UndoRefused("nothing was put back: there is nobody to ask, so say it with --yes")
        return agrees("Put the files back?", self.read)

    def _print(self, values: dict[str, Any]) -> None:
        if self.json:
            typer.echo(json.dumps(values))
