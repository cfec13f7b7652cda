"""How lines look on a terminal and elsewhere, and programs that have the terminal."""

import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Final, Literal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from daruma.graph.command_line._printable import shown
from daruma.tools.commands import find_program, host_environment, run_program

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


# --- Programs of a person's own that have the terminal for a while: an editor, a pager.


def in_foreground(
    command: Sequence[str],
    data: bytes | None = None,
    env: Mapping[str, str] | None = None,
    folder: Path = Path("/"),
) -> int:
    """Run a program, give it ``data`` to read, and return its exit code.

    Ctrl-C is meant for it alone meanwhile: what it does with that is its own matter. It may not be
    one of the workspace's, and is started in a ``folder`` where no workspace can leave settings for
    it (SE-01). Raises :class:`OSError` where it can not be started.
    """
    found = find_program(command[0])
    if found is None:
        raise FileNotFoundError(ENOENT, "it is not there, or lies in the workspace", command[0])
    own = env or host_environment()
    with _interrupts_left_alone():
        return run_program([found, *command[1:]], input=data, env=own, cwd=folder).returncode


@contextmanager
def _interrupts_left_alone() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are none of this thread's
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)  # ignored, it would be for programs too
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# --- Showing what is longer than the screen, a screen at a time.


def paged(paper: Paper, lines: Sequence[Line]) -> None:
    """Show all of the lines in ``$PAGER``, else ``less``; without one they are printed."""
    command = _pager()
    with paper.console.capture() as captured:
        paper.put(*lines)
    if not command or not _shown_in(command, captured.get()):
        paper.put(*lines)


def _pager() -> list[str]:
    with suppress(ValueError):  # a quote that is never closed
        if named := shlex.split(os.environ.get("PAGER", "")):
            return named
    found = find_program("less")
    return [found] if found else []


def _shown_in(command: Sequence[str], text: str) -> bool:
    options = {"LESS": "-R", "LESSCHARSET": "utf-8"}  # what is set already counts before these
    data = text.encode("utf-8", "replace")
    try:
        code = in_foreground(command, data, options | host_environment())
    except OSError:
        return False
    return code in (0, -signal.SIGINT)  # one that Ctrl-C ended has been looked at


# --- Reading a person's choice: one letter of those that are offered, or words.

Read = Callable[[str], str]


class Later(Exception):
    """Raised when a person leaves a question open; it is no error."""


def choice(offered: Mapping[str, str], read: Read) -> str:
    """Return the letter that is chosen; ``offered`` names each, as in ``{"c": "[c]onfirm"}``.

    Raises :class:`Later` for the letter ``l``.
    """
    while True:
        answer = read(f"  {', '.join(offered.values())}: ").strip().lower()[:1]
        if answer == "l":
            raise Later
        if answer and answer in offered:
            return answer


def words(prompt: str, read: Read) -> str:
    """Return what is typed. Raises :class:`Later` for nothing."""
    text = read(f"  {prompt}: ").strip()
    if not text:
        raise Later
    return text
