"""The texts of proper JSON are known."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.calls.repair.payload import said_texts


@given(st.lists(st.text()))
def test_proper_json_says_its_texts(texts: list[str]) -> None:
    """Decoded, wherever they stand; keys are none."""
    said = {"key": [*texts, 1, None], "other": {"deeper": texts}}

    assert said_texts(json.dumps(said)) == frozenset(texts)
    assert said_texts(json.dumps(json.dumps(said))) == frozenset(texts)


@pytest.mark.parametrize(
    "raw", ["", "{'a': 'b'}", '{"a": "b"', '"{\\"a\\": b}"', '"plain"', "[" * 100_000]
)
def test_broken_json_says_nothing_for_certain(raw: str) -> None:
    """Neither does text that is no JSON when it is unquoted, nor what is nested without end."""
    assert said_texts(raw) is None
