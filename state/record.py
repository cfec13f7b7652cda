"""The kind of value that state is made of: small, frozen, validated when it is built."""

from collections.abc import Callable
from dataclasses import asdict, fields
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeVar, cast, dataclass_transform

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

# --- Plain dataclasses with other values: what ``dataclasses.replace`` makes, at a fraction of it.

T = TypeVar("T")


def copy_with(value: T, **changes: Any) -> T:
    """Return a copy of a plain dataclass with other values.

    ``replace`` sets each of many fields by itself, past what keeps them from being changed. What a
    value has found out of itself (``cached_property``) goes with it: no change may make it another.
    Records are none of these: they are checked whenever they are built.
    """
    copy = object.__new__(type(value))
    vars(copy).update(vars(value), **changes)
    return copy


# --- The kind of value that state is made of: small, frozen, validated whenever it is built.

_CONFIG = ConfigDict(extra="forbid")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[T]) -> type[T]:
    """Make ``cls`` a stored record: frozen, keyword-only, no unknown fields.

    A checkpoint is read back by calling the constructor, so what validates here is validated again
    on every load. Records carry ``schema_version``; one that changes its fields gets a new number
    and a classmethod ``migrate(payload) -> payload`` for the older ones. So does one that changes a
    default: a field that holds it is not written, and ``migrate`` has to fill in what it was.
    """
    stored: Any = dataclass(frozen=True, kw_only=True, slots=True, config=_CONFIG)(cls)
    return cast("type[T]", stored)


def change_record(value: T, **changes: Any) -> T:
    """Return a record with other values; the same one where it holds them: it is valid already."""
    same = all(getattr(value, name) == each for name, each in changes.items())
    if same:
        return value
    kind: Any = type(value)
    names, values = _read(kind)  # `replace` looks at each field of a kind anew
    made: T = kind(**dict(zip(names, values(value), strict=True)) | changes)
    return made


_NOT_CHARGED: Final = ("usage", None)


def plain_values(value: Any) -> dict[str, Any]:
    """Return a record as JSON-able values, without its version and those of the records in it.

    What a request was charged for is left out where that is nothing.
    """
    plain: dict[str, Any] = _plain(asdict(value))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        told = {k: v for k, v in value.items() if k != "schema_version" and (k, v) != _NOT_CHARGED}
        return {key: _plain(each) for key, each in told.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


@cache
def _read(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(each.name for each in fields(kind))
    return names, attrgetter(*names)
