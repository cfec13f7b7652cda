"""Lines on a terminal and elsewhere, and a person's choice among letters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from daruma.graph.command_line._messages import shown

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
    """One thing to say. ``tail`` is what matters less: seconds, exit codes."""

    mark: Mark
    text: str
    tail: str = ""


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
            if self.terminal:
                self.console.print(self._hanging(line))
            else:
                self.console.print(self._plain(line), soft_wrap=True)

    def symbol(self, mark: Mark) -> str:
        """Return a mark's symbol, in characters that the output can take."""
        look = _LOOKS[mark]
        return look.ascii if self.console.options.ascii_only else look.symbol

    def _hanging(self, line: Line) -> RenderableType:
        look = _LOOKS[line.mark]
        grid = Table.grid(padding=0)
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
        return Text.assemble(indent, self.symbol(line.mark), " ", text)


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
