"""Reads back only what the project stores: LangGraph hands out the rest as raw data, silently."""

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic.dataclasses import is_pydantic_dataclass

from daruma.state.packing import Packing
from daruma.state.storage import DamagedState
from daruma.state.unpacking import Records, Unpacking

_READABLE = frozenset({"null", "bytes", "bytearray", "msgpack"})


class StrictSerializer(JsonPlusSerializer):
    """Reads LangGraph's own safe types and the given records (DU-05); writes as LangGraph does.

    Of a record only what is not its default is written. Records are pydantic dataclasses, so that
    building one validates it. One with an older ``schema_version`` than its class first passes
    through the class's ``migrate(payload)``, if any.

    Reading raises :class:`DamagedState` for any other type, for a record that does not validate,
    and for one that a newer version of its class wrote.
    """

    def __init__(self, types: Iterable[type]) -> None:
        self._records: Records = {(each.__module__, each.__name__): each for each in types}
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
            return Unpacking(self._records).read(payload)
        return super().loads_typed(data)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[Any]) -> "StrictSerializer":  # noqa: ARG002 - LangGraph's signature
        """Return the serializer itself: what it may read is settled when it is made."""
        return self
