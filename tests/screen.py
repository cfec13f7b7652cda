"""What a terminal shows after all that was written to it: lines that scrolled away included."""

import re
from collections.abc import Iterator

from rich.cells import cell_len

_PIECE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|([\r\n\b])|([^\x1b\r\n\b]+)|(.)", re.DOTALL)

_MODES = ("?1", "?7", "?12", "?25", "?2004")
"""Keys of arrows, wrapping, a blinking cursor, a cursor at all, marks around what is pasted."""


class Screen:
    """Knows the codes that a live view and a prompt use; any other code is an error."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = self.column = 0
        self.cursor_shown = True

    def write(self, text: str) -> "Screen":
        """Take the next piece of what is written."""
        for numbers, code, control, words, odd in _PIECE.findall(text):
            assert not odd, f"a terminal would obey {odd!r}"
            if code:
                self._code(numbers, code)
            elif control == "\r":
                self.column = 0
            elif control == "\n":
                self._feed()
            elif control == "\b":
                self.column -= 1
            else:
                self._put(words)
        return self

    @property
    def shown(self) -> list[str]:
        """The lines, without blanks at their ends."""
        return [line.rstrip() for line in self.lines]

    def _code(self, numbers: str, code: str) -> None:
        if code == "A":
            self.row -= int(numbers or 1)
            assert self.row >= 0, "the cursor went above all that was written"
        elif (numbers, code) == ("2", "K"):
            self.lines[self.row] = ""
        elif code in "CD":
            self.column += int(numbers or 1) * (1 if code == "C" else -1)
        elif code in "JK":
            assert not numbers, numbers
            self.lines[self.row] = self.lines[self.row][: self.column]
            self.lines = self.lines if code == "K" else self.lines[: self.row + 1]
        elif code in "hl":
            assert numbers in _MODES, numbers
            self.cursor_shown = code == "h" if numbers == "?25" else self.cursor_shown
        else:
            assert code == "m", (numbers, code)

    def _feed(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.lines):
            self.lines.append("")

    def _put(self, words: str) -> None:
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + words + line[self.column + len(words) :]
        self.column += len(words)


def widths(lines: list[str]) -> Iterator[int]:
    """Yield how many columns each line takes."""
    return map(cell_len, lines)
