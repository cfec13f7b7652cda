"""Tables of things: columns and rows, for a terminal, as tab-separated lines, or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

import typer

from daruma.graph.command_line._messages import one_line
from daruma.graph.command_line._output import Line, Paper
from daruma.state.steps import ContextUsage

Cell = str | datetime

_LONGEST: Final = 4000
"""Characters of a cell."""

_NARROWEST: Final = 8
"""Columns for the last cell; rather than less, times are left out."""

_STYLES: Final = {"completed": "green", "running": "cyan", "queued": "cyan"} | dict.fromkeys(
    ("completed, not checked", "waiting", "parked", "held", "unfinished"), "yellow"
)


@dataclass(frozen=True)
class Table:
    """Rows of as many cells as there are columns, the last of which is the longest.

    ``values`` are what programs get, if that is more than the cells; ``nothing`` is said where
    there is no row, ``note`` below the rows. A column ``status`` is coloured.
    ``cuts`` says that the last cell is cut to its line on a terminal, not broken into lines;
    ``below`` how many of the last cells have lines of their own there, under their row.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    values: object = None
    nothing: str = ""
    note: str = ""
    cuts: bool = False
    below: int = 0

    def show(self, paper: Paper, *, as_json: bool = False, as_tsv: bool = False) -> None:
        """Print it: JSON or tabs where asked for, on a terminal in columns, else by tabs."""
        if as_json:
            values = self.values
            if values is None:
                values = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
            typer.echo(json.dumps(values, default=str))
            return
        if not self.rows and not as_tsv:
            paper.put(Line("note", self.nothing))
        elif paper.terminal and not as_tsv and self.below:
            self._print_entries(paper)
        elif paper.terminal and not as_tsv:
            self._print_columns(paper)
        else:
            for row in self.rows:
                texts = (each if isinstance(each, str) else each.isoformat() for each in row)
                line = "\t".join(one_line(text, _LONGEST) for text in texts)
                typer.echo(line, file=paper.console.file)  # Rich would turn tabs into spaces
        if self.note:
            paper.put(Line("note", self.note))

    def _print_entries(self, paper: Paper) -> None:
        """Print each row on a line of its own, and below it, whole, the cells that are long."""
        from rich.padding import Padding
        from rich.text import Text

        now = datetime.now().astimezone()
        for row in self.rows:
            cells = [*map(partial(_cell, now), self.columns, row)]
            cells[0].stylize("bold")
            paper.console.print(Text("  ").join(cells[: -self.below]))
            for cell in cells[-self.below :]:
                paper.console.print(Padding(cell, (0, 0, 0, 2)), overflow="fold")

    def _print_columns(self, paper: Paper) -> None:
        """Print a head, and all but the last cell whole; the last takes the room that is left."""
        from rich.table import Table as Grid
        from rich.text import Text

        console, now = paper.console, datetime.now().astimezone()
        rows = [[Text(name, style="dim") for name in self.columns]]
        rows += [[*map(partial(_cell, now), self.columns, row)] for row in self.rows]
        shown = [*range(len(self.columns))]
        widths = [max(row[i].cell_len for row in rows) + 2 for i in shown[:-1]]
        for i, cell in enumerate(self.rows[0]):
            if isinstance(cell, datetime) and console.width - sum(widths) < _NARROWEST:
                shown.remove(i)
                widths[i] = 0
        grid = Grid.grid(padding=(0, 2, 0, 0))
        for i in shown[:-1]:
            grid.add_column(width=widths[i] - 2, no_wrap=True, overflow="ellipsis")
        room = max(_NARROWEST, console.width - sum(widths))
        grid.add_column(width=room, no_wrap=self.cuts, overflow="ellipsis" if self.cuts else "fold")
        for row in rows:
            grid.add_row(*(row[i] for i in shown))
        console.print(grid)


def _cell(now: datetime, column: str, cell: Cell) -> Any:
    from rich.text import Text

    if isinstance(cell, datetime):
        return Text(render_age((now - cell).total_seconds()), style="dim")
    style = _STYLES.get(cell, "red") if column == "status" else ""
    return Text(one_line(cell, _LONGEST), style=style)


def render_age(seconds: float) -> str:
    """Return how long ago something was, in its largest unit: ``3 h ago``."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


def context_table(usage: ContextUsage | None) -> Table:
    """Return what a window is spent on, as a table (CX-08); a chat's ``/context`` shows it too."""
    if usage is None:
        nothing = "it is told when a task of its own model has ended"
        return Table(("part", "tokens", "share"), (), values=None, nothing=nothing)
    most = usage.limit or usage.tokens
    sized = sorted(usage.parts.items(), key=lambda each: -each[1])
    rows = [("all", usage.tokens), *sized]
    rows += [("left out by compaction", usage.saved)] if usage.saved else []
    told = f"; {usage.told:,} by its provider, {usage.cached:,} of them kept" if usage.told else ""
    counted = "by a tokenizer" if usage.exact else "an estimate"
    of = f" of {usage.limit:,}" if usage.limit else ""
    return Table(
        ("part", "tokens", "share"),
        [(part, f"{size:,}", f"{100 * size / max(1, most):.0f} %") for part, size in rows],
        values=usage.to_dict(),
        note=f"{usage.tokens:,}{of} tokens, {counted}{told}",
    )
