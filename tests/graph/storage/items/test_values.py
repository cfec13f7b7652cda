"""Values, names and filters of items, as Postgres can hold and order them. Pure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.graph.storage.items._rows import (
    between,
    exact,
    fits,
    named,
    named_namespace,
    prefixes,
    stored_name,
    stored_namespace,
)

# --- Namespaces and keys, as they are stored.

LABELS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)
NAMESPACES = st.lists(LABELS, max_size=3).map(tuple)


@given(NAMESPACES, LABELS)
def test_they_come_back_as_they_were(namespace: tuple[str, ...], key: str) -> None:
    """Whatever characters they have; what is stored is plain ASCII."""
    stored = stored_namespace(namespace)

    assert named_namespace(stored) == namespace
    assert named(stored_name(key)) == key
    assert (stored + stored_name(key)).isascii()


@given(NAMESPACES, NAMESPACES)
def test_what_lies_between_is_what_is_beneath(
    prefix: tuple[str, ...], namespace: tuple[str, ...]
) -> None:
    """In the order of bytes, which is the database's for these columns."""
    first, last = between(prefix)
    beneath = namespace[: len(prefix)] == prefix

    stored = stored_namespace(namespace).encode()
    assert (first.encode() <= stored < last.encode()) is beneath
    assert beneath is (prefix in ((), *prefixes(namespace)))


# --- Which values a filter lets through.

VALUE = {"n": 2, "text": "b", "day": "2026-11-22", "tags": ["x", {"y": 1}], "deep": {"a": {"b": 1}}}


@pytest.mark.parametrize(
    ("wanted", "through"),
    [
        (None, True),
        ({}, True),
        ({"n": 2}, True),
        ({"n": 2.0, "text": "b"}, True),
        ({"n": 3}, False),
        ({"gone": None}, True),
        ({"n": {"$eq": 2}}, True),
        ({"n": {"$ne": 2}}, False),
        ({"gone": {"$ne": 2}}, True),
        ({"n": {"$gt": 1, "$lte": 2}}, True),
        ({"n": {"$gte": 2.5}}, False),
        ({"n": {"$lt": "3"}}, True),
        ({"day": {"$gt": "2026-11-21", "$lt": "2026-12"}}, True),
        ({"text": {"$gt": 1}}, False),
        ({"gone": {"$gt": 1}}, False),
        ({"tags": ["x", {"y": 1}]}, True),
        ({"tags": ["x"]}, False),
        ({"deep": {"a": {"b": 1}}}, True),
        ({"deep": {"a": {"b": {"$gt": 1}}}}, False),
        ({"n": {"a": 1}}, False),
    ],
)
def test_a_filter_lets_through_what_fits(wanted: Any, through: bool) -> None:
    """Equality, operators, lists and objects; numbers as numbers, dates as the texts they are."""
    assert fits(VALUE, wanted) is through


def test_what_is_exact_can_be_looked_up() -> None:
    """Short texts and numbers; the rest is only checked."""
    wanted = {"a": 1, "b": {"$eq": "x"}, "c": None, "d": [1], "e": "x" * 300, "f": {"$gt": 1}}

    assert exact(wanted) == {"a": 1, "b": "x"}
