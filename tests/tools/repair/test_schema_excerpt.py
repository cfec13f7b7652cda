"""A schema in few bytes is valid text and of use."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tools.repair.corpus.offered import TOOLS

from daruma.tools.calls.schema import cut, schema_excerpt

EVENT = TOOLS["create_event"].parameters


def test_a_small_schema_stays_whole() -> None:
    """Nothing is cut without need."""
    assert json.loads(schema_excerpt(EVENT, 100_000)) == EVENT


def test_prose_goes_first() -> None:
    """Descriptions and titles go, types, references and fixed values stay."""
    schema = {
        "title": "T",
        "properties": {"title": {"type": "string", "description": "x" * 500}},
        "required": ["title"],
    }

    excerpt = json.loads(schema_excerpt(schema, 200))

    assert excerpt == {"properties": {"title": {"type": "string"}}, "required": ["title"]}


def test_then_all_but_keys_and_types() -> None:
    """What is left names every property, its type, and what is required."""
    excerpt = json.loads(schema_excerpt(EVENT, 300))

    assert excerpt["required"] == ["title", "date", "attendees"]
    assert list(excerpt["properties"]) == list(EVENT["properties"])
    assert excerpt["properties"]["location"] == "object|null"


@pytest.mark.parametrize("name", TOOLS)
@settings(max_examples=30)
@given(max_bytes=st.integers(10, 3_000))
def test_an_excerpt_keeps_its_limit(name: str, max_bytes: int) -> None:
    """TL-09: bytes of UTF-8, not characters."""
    assert len(schema_excerpt(TOOLS[name].parameters, max_bytes).encode()) <= max_bytes


@given(text=st.text(), max_bytes=st.integers(10, 100))
def test_a_cut_text_is_valid_and_marked(text: str, max_bytes: int) -> None:
    """No character is cut in two."""
    short = cut(text, max_bytes)

    assert len(short.encode()) <= max_bytes
    assert short == text or short.endswith("[cut]") or "\ud800" <= max(text) <= "\udfff"
