"""Plain dataclasses with other values: what ``dataclasses.replace`` makes, at a fraction of it."""

from typing import Any, TypeVar

T = TypeVar("T")


def copied(value: T, **changes: Any) -> T:
    """Return a copy of a plain dataclass with other values.

    ``replace`` sets each of many fields by itself, past what keeps them from being changed. What a
    value has found out of itself (``cached_property``) goes with it: no change may make it another.
    Records are none of these: they are checked whenever they are built.
    """
    copy = object.__new__(type(value))
    vars(copy).update(vars(value), **changes)
    return copy
