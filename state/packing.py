"""Packs one value into msgpack as LangGraph does, but of a record only what is not its default.

A step of a run is kept as records, which mostly hold defaults: their names and values would be more
than half of what is written. So the defaults of a stored record are part of the storage format.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Final

import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send

_ALWAYS: Final = "schema_version"
"""What is read without one counts as older than all versions."""

_SIMPLE: Final = (type(None), bool, int, float, str)


class Packing:
    """The writing of values that hold records of the given types."""

    def __init__(self, records: Iterable[type]) -> None:
        self._fields = {each: (*_fields_of(each),) for each in records}

    def pack(self, value: Any) -> bytes:
        """Return the value as bytes, which :class:`~daruma.state.unpacking.Unpacking` reads."""
        return ormsgpack.packb(value, default=self._extended, option=jsonplus._option)

    def _extended(self, value: Any) -> Any:
        kind = type(value)
        if (fields := self._fields.get(kind)) is not None:
            return self._made_of(jsonplus.EXT_CONSTRUCTOR_KW_ARGS, kind, _told(value, fields))
        if kind is Send and value.timeout is None:
            return self._made_of(jsonplus.EXT_CONSTRUCTOR_POS_ARGS, kind, (value.node, value.arg))
        if kind is _DeltaSnapshot:
            return ormsgpack.Ext(jsonplus.EXT_DELTA_SNAPSHOT, self.pack(value.value))
        return jsonplus._msgpack_default(value)

    def _made_of(self, code: int, kind: type, payload: Any) -> ormsgpack.Ext:
        return ormsgpack.Ext(code, self.pack((kind.__module__, kind.__name__, payload)))


def defaults_of(record: type) -> Mapping[str, Any]:
    """Return the fields of a record that are left out where they hold this."""
    return {name: default for name, default in _fields_of(record) if default is not _TOLD}


_TOLD: Final = object()
"""The default of a field that is always written."""


def _fields_of(record: Any) -> Iterable[tuple[str, Any]]:
    for field in dataclasses.fields(record):
        simple = isinstance(field.default, _SIMPLE) or field.default == ()
        yield field.name, field.default if simple and field.name != _ALWAYS else _TOLD


def _told(value: Any, fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {
        name: each
        for name, default in fields
        if (each := getattr(value, name)) is not default
        and (type(each) is not type(default) or each != default)
    }
