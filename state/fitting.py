"""Whether what was stored for a channel is what the state says that it holds (DU-05).

Each record validates itself as it is read; this tells a record in another's place.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite

from daruma.state.channels import State, Update
from daruma.state.storage import DamagedState

Write = tuple[str, Any]


def refuse_misfits(values: Mapping[str, Any], writes: Iterable[Write] = ()) -> None:
    """Raise :class:`~daruma.state.storage.DamagedState` for a channel's value of another type.

    ``writes`` are those that wait to be applied. Channels that the state has not are let be, and so
    is what may be written to messages: whatever LangChain makes a message of.
    """
    for channel, stored in values.items():
        value = stored.value if isinstance(stored, _DeltaSnapshot) else stored
        if channel in _held() and not fits(value, _held()[channel]):
            raise DamagedState(f"channel {channel!r} holds a {type(value).__name__}")
    for channel, value in writes:
        if channel in _written() and not _may_be_written(channel, value):
            raise DamagedState(f"a {type(value).__name__} was written to channel {channel!r}")


def _may_be_written(channel: str, value: Any) -> bool:
    if isinstance(value, Overwrite):
        return value.value is None or fits(value.value, _held()[channel])
    return fits(value, _written()[channel]) or fits(value, _held()[channel])


@cache
def _held() -> dict[str, Any]:
    return get_type_hints(State, include_extras=True)


@cache
def _written() -> dict[str, Any]:
    hints = get_type_hints(Update, include_extras=True)
    return {name: hint for name, hint in hints.items() if name != "messages"}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type; a tuple may have become a list, as in msgpack."""
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return fits(value, of[0])
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in of)
    if origin is Literal:
        return value in of
    if origin in (list, tuple):
        return isinstance(value, list | tuple) and all(fits(each, of[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    return isinstance(value, NoneType if hint is None else hint)
