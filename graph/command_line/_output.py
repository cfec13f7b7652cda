"""What is printed: lines and tables, on a terminal and elsewhere; and a person's choice among
letters.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal

import typer
from rich.console import Console, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from daruma.graph.command_line._messages import one_line, shown
from daruma.state.steps import ContextUsage

# --- How lines look: on a terminal with colours and hanging indents, elsewhere as plain lines.

Mark = Literal[
    "head",
    "ok",
    "bad",
    "note",
    "words",
    "aside",
    "line",
    "minus",
    "plus",
    "alarm",
    "given",
    "payload",
    "same",
]


@dataclass(frozen=True)
class Line:
    """One thing to say. ``tail`` is what matters less: seconds, exit codes.

    A ``whole`` one holds a command to be pasted: no line end is put into it (TL-13).
    """

    mark: Mark
    text: str
    tail: str = ""
    whole: bool = False


Pasted = partial(Line, whole=True)


@dataclass(frozen=True)
class _Look:
    symbol: str
    ascii: str
    style: str
    symbol_style: str
    indent: int = 2


_LOOKS: dict[Mark, _Look] = {
    "head": _Look("●", "*", "bold", "bold red", indent=0),
    "ok": _Look("✓", "+", "", "green"),
    "bad": _Look("✗", "x", "", "bold red"),
    "note": _Look("·", "-", "", "dim"),
    "words": _Look("“", '"', "italic", "dim"),
    "aside": _Look("│", "|", "cyan", "cyan", indent=0),
    "line": _Look(" ", " ", "", ""),
    "minus": _Look("-", "-", "red", "red", indent=4),
    "plus": _Look("+", "+", "green", "green", indent=4),
    "alarm": _Look("!!", "!!", "bold red", "bold red", indent=0),
    "given": _Look("▸", ">", "", "bold"),
    "payload": _Look("│", "|", "", "bold", indent=4),
    "same": _Look(" ", " ", "dim", "", indent=4),
}


class Paper:
    """Prints lines. Their text may come from anywhere: nothing in it is obeyed."""

    def __init__(self, console: Console) -> None:
        self.console = console

    @property
    def terminal(self) -> bool:
        """Whether lines can be drawn over: a terminal that is not a dumb one."""
        return self.console.is_terminal and not self.console.is_dumb_terminal

    def put(self, *lines: Line) -> None:
        """Print lines, one under the other."""
        for line in lines:
            if line.mark == "head":
                self.console.print()
            if self.terminal and not line.whole:
                self.console.print(self._hanging(line))
            else:
                self.console.print(self._plain(line), soft_wrap=True)

    def symbol(self, mark: Mark) -> str:
        """Return a mark's symbol, in characters that the output can take."""
        look = _LOOKS[mark]
        return look.ascii if self.console.options.ascii_only else look.symbol

    def _hanging(self, line: Line) -> RenderableType:
        look = _LOOKS[line.mark]
        grid = Grid.grid(padding=0)
        grid.add_column(width=look.indent + len(look.symbol) + 1)
        grid.add_column(overflow="fold")
        symbol = Text(" " * look.indent + self.symbol(line.mark), style=look.symbol_style)
        grid.add_row(symbol, _text(line, look))
        return grid

    def _plain(self, line: Line) -> Text:
        look = _LOOKS[line.mark]
        indent = " " * look.indent
        text = _text(line, look)
        text.plain = text.plain.replace("\n", f"\n{indent}  ")
        return Text.assemble(indent, (self.symbol(line.mark), look.symbol_style), " ", text)


def _text(line: Line, look: _Look) -> Text:
    text = Text(shown(line.text), style=look.style)
    return text.append(f"  {shown(line.tail)}", style="not italic dim") if line.tail else text


# --- Showing the beginning and the end of what is very long, and saying what is left out.

MOST: Final = 200
"""Lines that a question shows of itself: some screens."""

_END: Final = 40


def cut(lines: Sequence[Line], most: int = MOST) -> list[Line]:
    """Return all of the lines, or the first and the last and how many are left out between."""
    left_out = len(lines) - most
    if left_out <= 0:
        return list(lines)
    end = min(_END, most // 2)
    said = f"{left_out} lines are left out here: [s]how whole shows all {len(lines)}"
    return [*lines[: most - end], Line("alarm", said), *lines[len(lines) - end :]]


# --- Reading a person's choice: one letter of those that are offered, or words.

Read = Callable[[str], str]


class Later(Exception):
    """Raised when a person leaves a question open; it is no error."""


def choice(offered: Mapping[str, str], read: Read) -> str:
    """Return the letter that is chosen; ``offered`` names each, as in ``{"c": "[c]onfirm"}``.

    The beginning of one of its words will do; a sentence that happens to begin with the letter was
    meant for something else. Raises :class:`Later` for the letter ``l``.
    """
    while True:
        answer = read(f"  {', '.join(offered.values())}: ").strip().lower()
        named = offered.get(answer[:1], "").translate({ord("["): None, ord("]"): None})
        if answer and any(word.startswith(answer) for word in named.split()):
            if answer[:1] == "l":
                raise Later
            return answer[:1]


def agrees(question: str, read: Read = input) -> bool:
    """Whether a person says yes to a question; the end of the input is a no."""
    try:
        return read(f"  {question} [y]es, [n]o: ").strip().lower()[:1] == "y"
    except EOFError:
        return False


def words(prompt: str, read: Read) -> str:
    """Return what is typed. Raises :class:`Later` for nothing."""
    text = read(f"  {prompt}: ").strip()
    if not text:
        raise Later
    return text


# --- Tables of things: columns and rows, for a terminal, as tab-separated lines, or as JSON.

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
    ``below`` how many of the last cells have lines of their own there, under their row; the last of
    these is a command.
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

        now = datetime.now().astimezone()
        for row in self.rows:
            cells = [*map(partial(_cell, now), self.columns, row)]
            cells[0].stylize("bold")
            paper.console.print(Text("  ").join(cells[: -self.below]))
            for cell in cells[-self.below : -1]:
                paper.console.print(Padding(cell, (0, 0, 0, 2)), overflow="fold")
            paper.console.print(Text("  ").append(cells[-1]), soft_wrap=True)

    def _print_columns(self, paper: Paper) -> None:
        """Print a head, and all but the last cell whole; the last takes the room that is left."""

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
