"""The bottom of a terminal that is drawn anew under everything that is printed above it."""

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleRenderable, RenderHook, RenderResult
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.text import Text

Draw = Callable[[int, int], Sequence[Text]]
"""Returns the lines for so many columns and rows."""


class LiveRegion(RenderHook):
    """Draws lines below what a console prints, between ``start`` and ``stop``.

    Nothing is written while nothing changes. Each change is one write: the lines as they were are
    taken away, also where a narrower terminal has broken them into more.
    """

    def __init__(self, console: Console, draw: Draw) -> None:
        self._console, self._draw = console, draw
        self._drawn: list[str] = []
        self._size = (0, 0)
        self.is_open = False

    def start(self) -> None:
        """Begin to draw."""
        self._console.push_render_hook(self)
        self._console.show_cursor(show=False)
        self.is_open = True

    def stop(self) -> None:
        """Take the lines away, and draw no more."""
        if self.is_open:
            self.is_open = False
            self._console.pop_render_hook()
            self._console.print(self._erased(), end="")
            self._drawn = []
            self._console.show_cursor(show=True)

    def refresh(self) -> None:
        """Draw the lines if they, or the terminal's size, are not what they were."""
        if self.is_open and (self._texts() != self._drawn or self._size != self._now()):
            self._console.print(Control())

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Have the lines taken away before, and drawn again after, what is printed."""
        erased = self._erased()
        self._size = self._now()
        lines = self._lines()
        self._drawn = [line.plain for line in lines]
        return [erased, *renderables, _Raw("", lines)]

    def _now(self) -> tuple[int, int]:
        size = self._console.size
        return size.width, size.height

    def _lines(self) -> list[Text]:
        columns, rows = self._console.size
        lines = list(self._draw(columns - 1, rows - 1))[: max(1, rows - 1)]
        for line in lines:
            line.truncate(columns - 1, overflow="ellipsis")
        return lines

    def _texts(self) -> list[str]:
        return [line.plain for line in self._lines()]

    def _erased(self) -> "_Raw":
        columns = max(1, self._console.width)
        rows = sum(max(1, -(-cell_len(line) // columns)) for line in self._drawn)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return _Raw(f"\r{up}\x1b[J" if self._drawn else "", ())


class _Raw:
    """Codes for the terminal, and lines without an end after the last."""

    def __init__(self, codes: str, lines: Sequence[Text]) -> None:
        self._codes, self._lines = codes, lines

    def __rich_console__(self, console: Console, options: object) -> RenderResult:
        if self._codes:
            yield Segment(self._codes, None, [(ControlType.CARRIAGE_RETURN,)])
        for number, line in enumerate(self._lines):
            if number:
                yield Segment("\n")
            yield from line.render(console, end="")
