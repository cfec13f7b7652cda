"""What a question shows of a long text, and how long ago something was."""

import pytest

from daruma.graph.command_line._output import Line, cut
from daruma.graph.command_line._tables import render_age

# --- Long texts: their ends are shown, and what is left out is counted.


def test_what_is_left_out_is_counted() -> None:
    """The lines that are shown and those that are counted are all there are."""
    lines = [Line("payload", str(number)) for number in range(500)]

    shown = cut(lines, 100)

    assert [shown[0], shown[-1]] == [lines[0], lines[-1]]
    (said,) = [line.text for line in shown if line.mark == "alarm"]
    assert said.startswith("400 lines are left out here")
    assert len(shown) == 101


def test_what_fits_is_whole() -> None:
    """Without a word about it."""
    lines = [Line("payload", str(number)) for number in range(100)]

    assert cut(lines, 100) == lines


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(5, "just now"), (125, "2 min ago"), (7200, "2 h ago"), (86400, "1 d ago")],
)
def test_how_long_ago_is_told_in_the_largest_unit(seconds: float, said: str) -> None:
    """In a list of threads, and at the head of a story."""
    assert render_age(seconds) == said
