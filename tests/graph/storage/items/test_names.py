"""Namespaces and keys, as they are stored."""

from hypothesis import given
from hypothesis import strategies as st

from daruma.graph.storage.items.values import (
    between,
    named,
    named_namespace,
    prefixes,
    stored_name,
    stored_namespace,
)

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
