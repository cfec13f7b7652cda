"""Which arguments can be kept in a checkpoint just as they are. Pure."""

from typing import Any, Final

DEEPEST: Final = 100
"""Levels of lists and objects in each other: what stores them goes to some hundred."""
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
"""The whole numbers that msgpack knows."""


def unstorable(value: Any, depth: int = 0) -> str | None:
    """Say what about a JSON value can not be stored unchanged; None if nothing."""
    if depth > DEEPEST:
        return f"it is nested more than {DEEPEST} levels deep"
    if isinstance(value, str):
        return None if _is_unicode(value) else "it holds half a character (a lone surrogate)"
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return "it holds a whole number of more than 64 bits"
    if isinstance(value, dict):
        return _first((*value, *value.values()), depth)
    return _first(value, depth) if isinstance(value, list | tuple) else None


def _first(values: Any, depth: int) -> str | None:
    for value in values:
        if said := unstorable(value, depth + 1):
            return said
    return None


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
