"""When two JSON values are one."""

from typing import Any


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one, ``1``, ``1.0`` and ``true`` being three."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)
