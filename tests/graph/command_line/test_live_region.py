"""The bottom of the terminal: drawn anew under what is printed, and gone without a trace."""

from io import StringIO

from rich.console import Console
from rich.text import Text
from tests.screen import Screen

from daruma.graph.command_line.progress import LiveRegion


class Seen:
    """A console whose width can be changed, a region on it, and what a terminal shows of both."""

    def __init__(self, *lines: str, columns: int = 40, rows: int = 10) -> None:
        self.file = StringIO()
        self.console = Console(file=self.file, force_terminal=True, width=columns, height=rows)
        self.lines = list(lines)
        self.region = LiveRegion(self.console, lambda *_: [Text(line) for line in self.lines])

    @property
    def screen(self) -> Screen:
        return Screen().write(self.file.getvalue())


def test_what_is_printed_stands_above_and_stays() -> None:
    """However often the lines below change, in number too."""
    seen = Seen("one", "two")
    seen.region.start()
    for number in range(5):
        seen.lines = [f"below {number}"] * (number % 3 + 1)
        seen.console.print(f"line {number}")

    assert seen.screen.shown == [*(f"line {number}" for number in range(5)), "below 4", "below 4"]


def test_at_the_end_nothing_is_left_but_what_was_printed() -> None:
    """And the cursor is there again."""
    seen = Seen("one", "two")
    seen.region.start()
    seen.console.print("said")
    hidden = not seen.screen.cursor_shown

    seen.region.stop()

    assert hidden
    assert (seen.screen.shown, seen.screen.cursor_shown) == (["said", ""], True)


def test_nothing_is_written_while_nothing_changes() -> None:
    """A view that stands still costs a terminal, or a connection to it, nothing."""
    seen = Seen("one")
    seen.region.start()
    seen.region.refresh()
    written = seen.file.getvalue()

    for _ in range(10):
        seen.region.refresh()

    assert "one" in written
    assert seen.file.getvalue() == written


def test_no_line_is_as_wide_as_the_terminal() -> None:
    """A line that fills its row is broken by some terminals: letters of two columns count two."""
    seen = Seen("数" * 30, "🎉" * 30, "x" * 90, columns=20)
    seen.region.start()
    seen.region.refresh()

    drawn = seen.screen.shown

    assert len(drawn) == 3
    assert all(Text(line).cell_len <= 19 for line in drawn)


def test_a_terminal_that_became_narrower_is_cleared_whole() -> None:
    """It has broken the lines into more rows, and all of them are taken away."""
    seen = Seen("x" * 35, "y" * 35)
    seen.region.start()
    seen.region.refresh()
    before = len(seen.file.getvalue())

    seen.console.width = 18
    seen.region.refresh()

    assert seen.file.getvalue()[before:].startswith("\r\x1b[3A\x1b[J")  # 2 rows each, on the last


def test_it_never_fills_the_terminal() -> None:
    """The row above it is for what is printed."""
    seen = Seen(*map(str, range(30)), rows=6)
    seen.region.start()
    seen.region.refresh()

    assert len(seen.screen.shown) == 5
