"""Text that is kept: one line, bounded, without keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.evolution.text import LONGEST_KEPT, kept_line


@given(st.text())
def test_any_text_becomes_one_line(text: str) -> None:
    """Nothing in it controls a terminal or hides."""
    line = kept_line(text)

    assert len(line) <= LONGEST_KEPT
    assert line.isprintable()
    assert kept_line(line) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n\tb\x1b[2J", "a b [2J"),
        ("key sk-abcdefghijklmnop is wrong", "key [key] is wrong"),
        ("x" * 400, "x" * 299 + "…"),
        ("half \ud83d of one", "half ? of one"),
        ("right\u202eleft", "right left"),
    ],
)
def test_what_may_not_be_kept_is_left_out(text: str, line: str) -> None:
    """Keys, control characters, halves of characters, and what is too long."""
    assert kept_line(text) == line
