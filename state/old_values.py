"""Reading single values of old snapshots; None for what is none of the kind."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, get_args

from daruma.state.clarification import ClarificationStatus
from daruma.state.continuity import RESUME

_YES: Final = frozenset({"true", "yes", "1"})
_NO: Final = frozenset({"false", "no", "0"})
_OPEN: Final = frozenset({"fresh", "active", "pending", "awaiting", "waiting", "asked"})
_DEEPEST: Final = 50
"""Levels of a value that are kept; what is below stands there as text."""
_MOST: Final = 10_000
"""Mappings and lists that are kept of a value."""
_LARGEST: Final = 2**63 - 1


def squashed(key: str) -> str:
    """Return a key without what differs between spellings: case and separators."""
    return "".join(each for each in key.casefold() if each not in "_-. ")


def jsonable(value: Any) -> Any:
    """Return a value as JSON can hold it, and every database: what is something else as text.

    It has an end, also where a value holds itself.
    """
    return _kept(value, 0, iter(range(_MOST)))


def _kept(value: Any, depth: int, room: Iterator[int]) -> Any:
    if not isinstance(value, Mapping | list | tuple | set | frozenset):
        return _kept_whole(value)
    if depth >= _DEEPEST or next(room, None) is None:
        return f"({type(value).__name__} of {len(value)})"
    if isinstance(value, Mapping):
        return {_storable(str(k)): _kept(each, depth + 1, room) for k, each in value.items()}
    return [_kept(each, depth + 1, room) for each in value]


def _kept_whole(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _LARGEST:
        return value
    return _storable(value if isinstance(value, str) else repr(value)[:1000])


def _storable(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def reading_of(field: str, value: Any) -> Any:
    """Return a value in the form of a clarification's field, None where it can be none."""
    read: Callable[[Any], Any] = _READ.get(field, _text)
    return read(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _named(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _args(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _names(value: Any) -> tuple[str, ...] | None:
    given = [value] if isinstance(value, str) and value else value
    fits = isinstance(given, list) and all(isinstance(each, str) for each in given)
    return tuple(given) if fits else None


def _truth(value: Any) -> bool | None:
    word = str(value).strip().casefold()
    return True if word in _YES else False if word in _NO else None


def _status(value: Any) -> ClarificationStatus | None:
    word = value.casefold() if isinstance(value, str) else ""
    found: ClarificationStatus | None = next(
        (each for each in get_args(ClarificationStatus) if each == word), None
    )
    return "open" if word in _OPEN else found


def _mode(value: Any) -> str | None:
    return value if value in ("", RESUME) else None


def _count(value: Any) -> int | None:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    is_count = isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= 1000
    return number if is_count else None


def _version(value: Any) -> int | None:
    return 1 if _count(value) == 1 else None


def _list(value: Any) -> list[Any] | None:
    fits = isinstance(value, list) and all(isinstance(each, dict) for each in value)
    return value if fits else None


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "target_action": _named,
    "partial_args": _args,
    "missing_fields": _names,
    "waits": _truth,
    "status": _status,
    "mode": _mode,
    "asked": _count,
    "schema_version": _version,
    "also": _list,
    "extra": _args,
}
