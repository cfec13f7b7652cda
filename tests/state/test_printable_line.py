"""Whatever text comes from outside, one printable line of it is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.text import LONGEST, printable_line


@given(st.text(max_size=1000))
def test_it_is_one_bounded_printable_line(text: str) -> None:
    """And stays as it is when it is made again."""
    line = printable_line(text)

    assert len(line) <= LONGEST
    assert all(each.isprintable() or each == "\u200d" for each in line)
    assert printable_line(line) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("assert 3 == 4", "assert 3 == 4"),
        ("a\r\n\tb\x00c\x1b[31m", "a b c [31m"),
        ("\u202edrow\u202c \ud800", "drow"),
        ("Grüße 👩\u200d🚒", "Grüße 👩\u200d🚒"),
        ("x" * 301, "x" * 299 + "…"),
        (" " * 100_000 + "x", ""),
    ],
)
def test_what_stays_of_a_text(text: str, line: str) -> None:
    """Letters of all scripts and emoji do; what steers a terminal or a reader does not."""
    assert printable_line(text) == line
