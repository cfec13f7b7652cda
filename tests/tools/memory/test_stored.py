"""A memory is checked before it is kept, and again when it is read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.memory.memories import LONGEST_TEXT, MemoryRefused, as_value, checked, from_value


def test_the_same_text_is_the_same_memory() -> None:
    """However it is spaced or cased; for another role it is another one."""
    first = checked("The tests need  DB_URL.", at=1.0)

    assert checked(" the tests need DB_URL.\n", section="tests").id == first.id
    assert checked("The tests need DB_URL.", role="tester").id != first.id
    assert len(first.id) == 12


def test_common_is_no_role_of_its_own() -> None:
    """CO-04: it is what everybody sees."""
    assert checked("a fact", role="common") == checked("a fact")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("use sk-proj-a1B2c3D4e5 here", "use [key] here"),
        ("clone https://ann:hunter2@host/r", "clone https://[key]@host/r"),
        ("a\0b \ud800", "a\N{REPLACEMENT CHARACTER}b ?"),
    ],
)
def test_keys_and_what_no_database_takes_are_not_kept(text: str, kept: str) -> None:
    """What follows from a key stays useful without it."""
    assert checked(text).text == kept


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"text": " \n"}, "the text is empty"),
        ({"text": "x" * 2001}, "has 2001 characters, a memory at most 2000"),
        ({"text": "a", "section": "s" * 65}, "the section has to be a short name"),
        ({"text": "a", "role": "a\x1bb"}, "the role has to be a short name"),
    ],
)
def test_what_can_not_be_kept_is_refused_in_a_line(given: dict[str, Any], why: str) -> None:
    """With what to do about it."""
    with pytest.raises(MemoryRefused, match=why):
        checked(**given)


@given(st.text(max_size=LONGEST_TEXT), st.floats(0, 1e10))
def test_what_was_kept_is_read_back(text: str, at: float) -> None:
    """Whole, with its section."""
    try:
        memory = checked(text, section="s", role="r", at=at)
    except MemoryRefused:
        return

    assert from_value(memory.id, as_value(memory, thread="t"), "r") == memory


@pytest.mark.parametrize(
    "value", [{}, {"text": 3}, {"text": ""}, {"text": "x" * 2001}, {"text": "a", "section": ["b"]}]
)
def test_what_is_no_memory_is_passed_over(value: dict[str, object]) -> None:
    """A store is open to others."""
    assert from_value("k", value, "") is None


@pytest.mark.parametrize("at", [-1.0, 1e300, float("nan"), float("inf"), None])
def test_a_time_that_is_none_is_no_harm(at: float | None) -> None:
    """A memory without a date is still one."""
    found = from_value("k", {"text": "a", "at": at}, "")

    assert found is not None
    assert found.at == 0.0
