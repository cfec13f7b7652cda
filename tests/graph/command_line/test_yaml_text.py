"""What a person edits comes back as it was, and as what it looks like."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daruma.graph.command_line._editing import AnswerRefused
from daruma.graph.command_line._yaml_text import from_yaml, to_yaml

LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: Any = st.recursive(
    LEAVES | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8
)


@settings(max_examples=40)
@given(st.dictionaries(TEXTS, VALUES))
def test_a_value_that_nobody_changed_is_the_same(value: dict[str, Any]) -> None:
    """Line ends, blanks at the ends, words such as ``yes`` and dates in texts too."""
    assert from_yaml(to_yaml(value)) == value


def test_what_hides_is_seen_in_an_editor() -> None:
    """It comes back as it was."""
    value = {"command": "ls \u202e\u200b\x1b\n", "of": "\u3164\n"}

    text = to_yaml(value)

    assert "".join(text.split()).isascii()
    assert r"\u202e\u200b\e" in text
    assert from_yaml(text) == value


def test_several_lines_are_written_as_lines() -> None:
    """A file's content is edited as it will be, not between quotes."""
    assert to_yaml({"file_text": "a\n  b\n"}) == "file_text: |\n  a\n    b\n"


READ: list[tuple[str, Any]] = [
    ("a: no", "no"),
    ("a: 2024-01-01", "2024-01-01"),
    ("a: true", True),
    ("a: 0x10", 16),
    ('{"a": [1, null]}', [1, None]),
    ("a: 1\r\n", 1),
]


@pytest.mark.parametrize(("text", "value"), READ)
def test_what_a_person_types_is_what_it_looks_like(text: str, value: object) -> None:
    """JSON is fine as well, and so are the line ends of Windows."""
    assert from_yaml(text) == {"a": value}


REFUSED = [
    "",
    "just words",
    "- a\n- b\n",
    "a: [",
    "a: .inf",
    "1: x",
    "a: !!python/name:os.system x",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_object_is_refused_in_one_line(text: str) -> None:
    """Also what would make a Python object."""
    with pytest.raises(AnswerRefused) as refused:
        from_yaml(text)

    assert len(str(refused.value).splitlines()) == 1
