"""Packing stored values into msgpack, and reading back only what the project stores."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cache, reduce
from importlib import import_module
from typing import Any, Final

import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import ValidationError
from pydantic.dataclasses import is_pydantic_dataclass

from daruma.state.errors import DamagedState

_NOTHING: Final = ormsgpack.Ext(jsonplus.EXT_DELTA_SNAPSHOT, ormsgpack.packb(None))
DeltaSnapshot: Final[Any] = type(
    JsonPlusSerializer().loads_typed(("msgpack", ormsgpack.packb(_NOTHING)))
)
"""LangGraph's class for the whole copy of a delta channel. It has no public name."""

# --- Packs one value into msgpack as LangGraph does, but of a record only what is not its default.
#
# A step of a run is kept as records, which mostly hold defaults: their names and values would be
# more than half of what is written. So the defaults of a stored record are part of the storage
# format.

_ALWAYS: Final = "schema_version"
"""What is read without one counts as older than all versions."""

_SEND: Final = ("langgraph.types", "Send")
"""By name: an import of it loads half of LangChain, which who lists threads does without."""

_SIMPLE: Final = (type(None), bool, int, float, str)

_OPTIONS: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)
"""LangGraph's, so that what it packs and what is packed here reads the same."""

_LANGGRAPHS: Final = JsonPlusSerializer()


class Packing:
    """The writing of values that hold records of the given types."""

    def __init__(self, records: Iterable[type]) -> None:
        self._fields = {each: (*_fields_of(each),) for each in records}

    def pack(self, value: Any) -> bytes:
        """Return the value as bytes, which :class:`~daruma.state.serializer.Unpacking` reads."""
        return ormsgpack.packb(value, default=self._extended, option=_OPTIONS)

    def _extended(self, value: Any) -> Any:
        kind = type(value)
        if (fields := self._fields.get(kind)) is not None:
            return self._made_of(jsonplus.EXT_CONSTRUCTOR_KW_ARGS, kind, _told(value, fields))
        if kind is DeltaSnapshot:
            return ormsgpack.Ext(jsonplus.EXT_DELTA_SNAPSHOT, self.pack(value.value))
        if (kind.__module__, kind.__name__) == _SEND and value.timeout is None:
            return self._made_of(jsonplus.EXT_CONSTRUCTOR_POS_ARGS, kind, (value.node, value.arg))
        _, packed = _LANGGRAPHS.dumps_typed(value)
        return ormsgpack.unpackb(packed, ext_hook=ormsgpack.Ext)

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


# --- Rebuilds one stored value out of msgpack, calling only constructors that are agreed on.

Records = Mapping[tuple[str, ...], type]
Others = frozenset[tuple[str, ...]]

_SAFE_CLASSES: Final = {
    "datetime": "datetime date time timedelta timezone",
    "uuid": "UUID",
    "decimal": "Decimal",
    "builtins": "set frozenset",
    "collections": "deque",
    "ipaddress": "IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network",
    "pathlib": "Path PosixPath WindowsPath",
    "pathlib._local": "Path PosixPath WindowsPath",
    "zoneinfo": "ZoneInfo",
    "re": "compile",
    "langchain_core.messages.base": "BaseMessage BaseMessageChunk",
    "langchain_core.messages.human": "HumanMessage HumanMessageChunk",
    "langchain_core.messages.ai": "AIMessage AIMessageChunk",
    "langchain_core.messages.system": "SystemMessage SystemMessageChunk",
    "langchain_core.messages.chat": "ChatMessage ChatMessageChunk",
    "langchain_core.messages.tool": "ToolMessage ToolMessageChunk",
    "langchain_core.messages.function": "FunctionMessage FunctionMessageChunk",
    "langchain_core.messages.modifier": "RemoveMessage",
    "langchain_core.documents.base": "Document",
    "langgraph.types": "Send TimeoutPolicy Interrupt Command StateSnapshot PregelTask Overwrite",
    "langgraph.store.base": "Item GetOp",
}
"""The classes, by their module, that LangGraph takes for safe to construct."""
_SAFE: Final[Others] = frozenset(
    {(module, name) for module, names in _SAFE_CLASSES.items() for name in names.split()}
    | {("datetime", "datetime", "fromisoformat")}
)
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

    def __init__(self, records: Records, others: Others = frozenset()) -> None:
        self._records = records
        self._safe = _SAFE | others
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
                return DeltaSnapshot(value)
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
        if not record and known not in self._safe:
            raise DamagedState(
                f"{shown} is no type that is stored; a graph of your own that keeps such values "
                f"names them: checkpointer.with_allowlist([{known!r}])"
            )
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
    if known == _SEND:
        from langgraph.types import Send

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


# --- Reads back only what the project stores: LangGraph hands out the rest as raw data, silently.


@dataclasses.dataclass(frozen=True)
class Asked:
    """LangGraph's ``Interrupt``, for who only looks and imports no LangGraph (FA-13)."""

    value: Any
    id: str
    response_schema: Any = None


_READABLE = frozenset({"null", "bytes", "bytearray", "msgpack"})


class StrictSerializer(JsonPlusSerializer):
    """Reads LangGraph's own safe types and the given records (DU-05); writes as LangGraph does.

    Of a record only what is not its default is written. Records are pydantic dataclasses, so that
    building one validates it. One with an older ``schema_version`` than its class first passes
    through the class's ``migrate(payload)``, if any.

    Reading raises :class:`DamagedState` for any other type, for a record that does not validate,
    and for one that a newer version of its class wrote.
    """

    def __init__(self, types: Iterable[type], others: Others = frozenset()) -> None:
        self._types, self._others = (*types,), others
        self._records: Records = {(each.__module__, each.__name__): each for each in self._types}
        for record in self._records.values():
            if not is_pydantic_dataclass(record):
                raise TypeError(f"{record.__name__} is no pydantic dataclass: nothing validates it")
        self._packing = Packing(self._records.values())
        super().__init__(
            allowed_msgpack_modules=None, __unpack_ext_hook__=Unpacking(self._records).rebuild
        )

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if obj is None or isinstance(obj, bytes | bytearray):
            return super().dumps_typed(obj)
        return "msgpack", self._packing.pack(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, payload = data
        if kind not in _READABLE:
            raise DamagedState(f"a value stored as {kind!r} is never read")
        if kind == "msgpack":
            return Unpacking(self._records, self._others).read(payload)
        return super().loads_typed(data)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[Any]) -> "StrictSerializer":  # noqa: ARG002 - LangGraph's signature
        """Return the serializer itself: what it may read is settled when it is made."""
        return self

    def reading(self, others: Iterable[type | tuple[str, ...]]) -> "StrictSerializer":
        """Return one that reads values of other classes, too, each named by its module and name."""
        named = ((e.__module__, e.__name__) if isinstance(e, type) else (*e,) for e in others)
        return StrictSerializer(self._types, self._others | frozenset(named))

    def looking(self) -> "StrictSerializer":
        """Return one that reads an ``Interrupt`` as :class:`Asked`."""
        own = copy(self)
        own._records = {**self._records, ("langgraph.types", "Interrupt"): Asked}
        return own


# --- The types that a checkpoint may hold: what else is found in one is refused.
#
# Their full names are part of the storage format: renaming or moving one needs a migration.

_STORED: Final = {
    "calls": "Allowance Dispatch ToolTask",
    "conversation": "Clarification Continuity",
    "emergency": "EmergencyError",
    "failure": "Failure Recovered RecoveryAction",
    "lessons": "Instruction Instructions KnownPitfall Lessons Recalled Remembered",
    "plan": "Assignment Phase Plan Report",
    "result": "Checked Structured TaskResult",
    "savepoint": "Drifted Savepoint",
    "steps": "ArgumentRepair Audit Compaction ContextCost ContextUsage Crowded Grant HookNote "
    "LeftOut NameChange Overrun RepairRound Step",
    "task": "Amounts Limits Task",
    "usage": "Attempt Failover Usage",
    "verification": "Check Verdict Verification",
}
STORED_TYPES: Final[tuple[type, ...]] = tuple(
    getattr(import_module(f"daruma.state.{module}"), name)
    for module, names in _STORED.items()
    for name in names.split()
)
