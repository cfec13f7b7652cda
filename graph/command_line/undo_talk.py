"""The talk around putting files back: say what will change, ask, do it, and say what came of it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.savepoint_lines import savepoint_lines, savepoint_values
from daruma.graph.command_line.thread_view import ThreadView
from daruma.graph.command_line.undo_lines import (
    preview_lines,
    refused_lines,
    restored_lines,
    restored_values,
)
from daruma.graph.undoing import Place, UndoRefused, snapshots_of
from daruma.tools.snapshots.outcome import Conflicts, RestoreRefused
from daruma.tools.snapshots.restore import preview

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

        Raises :class:`~daruma.graph.undoing.UndoRefused` where nobody can be asked.
        """
        snapshots = snapshots_of(place.workspace, place.thread)
        foreseen = preview(snapshots, place.snapshot, conflicts=conflicts)
        self.paper.put(*preview_lines(place, foreseen.changes))
        refused = foreseen.conflicts and conflicts == "refuse"  # then there is nothing to ask
        if foreseen.changes and not refused and not self.yes and not self._wanted():
            self.paper.put(Line("note", "nothing was put back"))
            return REFUSED
        try:
            restored = snapshots.restore(place.snapshot, conflicts=conflicts)
        except RestoreRefused as refused:
            return self._refused(place, to, refused)
        self.paper.put(*restored_lines(place.thread, restored))
        self._print(restored_values(place, restored))
        return EXACT if restored.exact and not restored.left else INEXACT

    def _wanted(self) -> bool:
        if self.read is None:
            raise UndoRefused("nothing was put back: there is nobody to ask, so say it with --yes")
        try:
            return self.read("  Put the files back? [y]es, [n]o: ").strip().lower()[:1] == "y"
        except EOFError:
            return False

    def _refused(self, place: Place, to: str | None, refused: RestoreRefused) -> int:
        self.paper.put(*refused_lines(place.thread, to, refused))
        told = {"refused": str(refused), "conflicts": list(refused.conflicts)}
        self._print({"thread": place.thread, **told})
        return REFUSED

    def _print(self, values: dict[str, Any]) -> None:
        if self.json:
            typer.echo(json.dumps(values))
