"""Rebuilds one stored value out of msgpack, calling only constructors that are agreed on."""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache, reduce
from importlib import import_module
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import ValidationError

from daruma.state.storage import DamagedState

Records = Mapping[tuple[str, ...], type]

_SAFE = SAFE_MSGPACK_TYPES | SAFE_MSGPACK_METHODS
_APPLY: dict[int, Callable[[Callable[..., Any], Any], Any]] = {
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: lambda make, payload: make(payload),
    jsonplus.EXT_CONSTRUCTOR_POS_ARGS: lambda make, payload: make(*payload),
    jsonplus.EXT_CONSTRUCTOR_KW_ARGS: lambda make, payload: make(**payload),
    jsonplus.EXT_METHOD_SINGLE_ARG: lambda make, payload: make(payload),
    jsonplus.EXT_PYDANTIC_V2: lambda make, payload: make(**payload),
}


class Unpacking:
    """The reading of one value, in which the first refusal decides.

    It is kept here, because ormsgpack turns whatever its hook raises into "ext_hook failed".
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._refusal: DamagedState | None = None

    def read(self, packed: bytes) -> Any:
        """Return the value; raises :class:`DamagedState` when any part of it may not be read."""
        try:
            return self._unpack(packed)
        except ValueError as error:
            raise self._refusal or DamagedState(f"a value is no msgpack: {error}") from error

    def rebuild(self, code: int, packed: bytes) -> Any:
        """Rebuild one extension value; ormsgpack calls this for each, innermost first."""
        try:
            value = self._unpack(packed)
            if code == jsonplus.EXT_DELTA_SNAPSHOT:
                return _DeltaSnapshot(value)
            if code not in _APPLY:
                raise DamagedState(f"a value in the unknown form {code}")
            return self._make(code, *value)
        except DamagedState as refusal:
            self._refusal = self._refusal or refusal
            raise
        except Exception as error:
            self._refusal = self._refusal or DamagedState(f"a value is malformed: {error}")
            raise self._refusal from error

    def _unpack(self, packed: bytes) -> Any:
        return ormsgpack.unpackb(packed, ext_hook=self.rebuild, option=ormsgpack.OPT_NON_STR_KEYS)

    def _make(self, code: int, module: str, name: str, payload: Any, method: str = "") -> Any:
        known = (module, name, method) if code == jsonplus.EXT_METHOD_SINGLE_ARG else (module, name)
        shown = repr(".".join(known))
        record = self._records.get(known)
        if not record and known not in _SAFE:
            raise DamagedState(f"{shown} is no type that is stored")
        try:
            if record:
                return record(**up_to_date(record, payload))
            return _APPLY[code](_safe(known), payload)
        except Exception as error:
            raise DamagedState(f"{shown} does not validate: {_reason(error)}") from error


def up_to_date(record: type, payload: dict[str, Any]) -> dict[str, Any]:
    """Return a record's stored fields as its class wants them now, migrated when they are older.

    Fields from before there was a ``schema_version`` count as version 0. Raises ``ValueError`` when
    a newer version of the class wrote them.
    """
    versions: list[Any] = [
        f.default for f in dataclasses.fields(record) if f.name == "schema_version"
    ]
    if not versions:
        return payload
    stored, current = payload.get("schema_version", 0), versions[0]
    if type(stored) is not int or stored > current:
        raise ValueError(f"schema_version is {stored!r}, this program knows those up to {current}")
    if stored < current and (migrate := getattr(record, "migrate", None)):
        payload = migrate(payload)
    return {**payload, "schema_version": current}


@cache
def _safe(known: tuple[str, ...]) -> Callable[..., Any]:
    if known == ("langgraph.types", "Send"):
        return lambda node, arg, timeout=None: Send(node, arg, timeout=timeout)
    module, *path = known
    start: Any = import_module(module)
    found: Callable[..., Any] = reduce(getattr, path, start)
    return found


def _reason(error: Exception) -> str:
    """Say in one line, and without the stored values, what a constructor objected to."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
    return " ".join(str(error).split()) or type(error).__name__
