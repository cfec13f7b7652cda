"""Digests are short, and equal for equal things only."""

from daruma.state.text import digest


def test_the_order_of_keys_does_not_count() -> None:
    """Models write the arguments of a call in any order; that of a list is part of it."""
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest([1, 2]) != digest([2, 1])


def test_a_digest_is_short_whatever_it_is_of() -> None:
    """Lone surrogates are in what models send."""
    assert [len(digest(value)) for value in ("", "\ud800", "x" * 10_000)] == [16, 16, 16]
