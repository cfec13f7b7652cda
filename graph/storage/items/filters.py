"""Which values a filter lets through, as LangGraph's stores read one. Pure."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from daruma.state.errors import DarumaError

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_SHORT: Final = 200
OPERATORS: Final = ("$eq", "$ne", *_ORDERS)


class FilterRefused(DarumaError, ValueError):
    """Raised for a filter with an operator that is none."""


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value fits a filter. Raises :class:`FilterRefused`."""
    return all(_equals(value.get(key), what) for key, what in (wanted or {}).items())


def exact(wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a filter asks to be equal to a plain value, by key: an index can look it up."""
    found = {}
    for key, what in (wanted or {}).items():
        plain = what["$eq"] if isinstance(what, Mapping) and "$eq" in what else what
        if is_plain(plain):
            found[key] = plain
    return found


def is_plain(value: Any) -> bool:
    """Whether a value is a short text or a number; one that is None may as well not be there."""
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _SHORT)


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(name, value, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(
            _equals(value.get(key), other) for key, other in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_equals, value, wanted))
        )
    return bool(value == wanted)


def _holds(name: str, value: Any, wanted: Any) -> bool:
    if name in ("$eq", "$ne"):
        return bool(value == wanted) is (name == "$eq")
    if name not in _ORDERS:
        known = ", ".join(OPERATORS)
        raise FilterRefused(f"a filter knows {known}, and no {name!r}")
    pair = _comparable(value, wanted)
    return pair is not None and _ORDERS[name](*pair)


def _comparable(value: Any, wanted: Any) -> tuple[Any, Any] | None:
    """Return both as numbers, else both as texts; None for what has no order."""
    try:
        return float(value), float(wanted)
    except (TypeError, ValueError, OverflowError):
        both_texts = isinstance(value, str) and isinstance(wanted, str)
        return (value, wanted) if both_texts else None
