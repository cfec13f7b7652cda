"""Which arguments are as good as the same."""

from typing import Any

import pytest

from daruma.state.text import folded

ALIKE = [
    ("Foo Bar", "foo  bar "),
    ("foo, bar.", "'foo bar'"),
    ("./src/", "src"),
    ({"q": ["Foo"]}, {"q": ["foo!"]}),
    ("page 3.", "page 3"),
    ("3, b", "3 b"),
]
DIFFERENT = [
    ("page 3", "page 4"),
    ("1.5", "15"),
    ("x = -1", "x = 1"),
    ("a < b", "a > b"),
    ("C#", "C++"),
    ("+", "-"),
    ("a", "A"),
    ("", "."),
    ("()", "[]"),
    ("if x:\n  y", "if x:\n    y"),
    ("Title\nbody", "title\nbody"),
    ("touch a_b", "touch a-b"),
    ("touch a.b", "touch a b"),
    ("src/a_b.py", "src/a/b.py"),
    ("x = foo(a)", "x = foo[a]"),
    ("rm -r a /b", "rm -r a/b"),
    (".5", "5"),
    (3, 3.5),
    (True, "true"),
    (["a", "b"], ["b", "a"]),
    ({"old": "x"}, {"new": "x"}),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_case_white_space_and_punctuation_do_not_count(one: Any, other: Any) -> None:
    """RE-02: a model that rewords nothing but these does the same again."""
    assert folded(one) == folded(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_may_carry_meaning_counts(one: Any, other: Any) -> None:
    """Numbers, operators, single characters, and the content of files."""
    assert folded(one) != folded(other)
