"""Showing the beginning and the end of what is very long, and saying what is left out."""

from collections.abc import Sequence
from typing import Final

from daruma.graph.command_line.paper import Line

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
