"""Whether what was stored for a channel is what the state says that it holds (DU-05).

Each record validates itself as it is read; this tells a record in another's place.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import chain
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Overwrite

from daruma.state.channels import State, Update
from daruma.state.storage import DamagedState

Write = tuple[str, Any]
Fits = Callable[[Any], bool]


def refuse_misfits(values: Mapping[str, Any], writes: Iterable[Write] = ()) -> None:
    """Raise :class:`~daruma.state.storage.DamagedState` for a channel's value of another type.

    ``writes`` are those that wait to be applied. Channels that the state has not are let be, and so
    is what may be written to messages: whatever LangChain makes a message of.
    """
    for channel, stored in values.items():
        value = stored.value if isinstance(stored, _DeltaSnapshot) else stored
        if channel in _held() and not _held()[channel](value):
            raise DamagedState(f"channel {channel!r} holds a {type(value).__name__}")
    for channel, value in writes:
        if channel in _written() and not _may_be_written(channel, value):
            raise DamagedState(f"a {type(value).__name__} was written to channel {channel!r}")


def misfit_of(values: Mapping[str, Any]) -> str:
    """Say what of values that are to be written would be found damaged; empty for nothing.

    What becomes of messages is known only once LangChain has made them.
    """
    for channel, value in values.items():
        made = channel == "messages" and not isinstance(value, Overwrite)
        if channel in _held() and not made and not _may_be_written(channel, value):
            kind = type(value.value if isinstance(value, Overwrite) else value).__name__
            return f"channel {channel!r} takes no such {kind}"
    return ""


def _may_be_written(channel: str, value: Any) -> bool:
    if isinstance(value, Overwrite):
        return value.value is None or _held()[channel](value.value)
    return (channel in _written() and _written()[channel](value)) or _held()[channel](value)


@cache
def _held() -> dict[str, Fits]:
    hints = get_type_hints(State, include_extras=True)
    return {name: fitting(hint) for name, hint in hints.items()}


@cache
def _written() -> dict[str, Fits]:
    hints = get_type_hints(Update, include_extras=True)
    return {name: fitting(hint) for name, hint in hints.items() if name != "messages"}


def fitting(hint: Any) -> Fits:
    """Return what tells whether a value is of a type; a list may stand for a tuple, as in msgpack.

    A history has thousands of values of one type, which is taken apart only once.
    """
    origin, of = get_origin(hint), get_args(hint)
    if classes := _classes(hint):
        return lambda value: isinstance(value, classes)
    if origin is Annotated:
        return fitting(of[0])
    if origin is Literal:
        return lambda value: value in of
    if origin in (Union, UnionType):
        either = [fitting(each) for each in of]
        return lambda value: any(fits(value) for fits in either)
    if origin in (list, tuple):
        of_each = fitting(of[0])
        return lambda value: isinstance(value, list | tuple) and all(map(of_each, value))
    return lambda value: isinstance(value, origin)


def _classes(hint: Any) -> tuple[type, ...]:
    """Return the classes that a type is one of; none where it is not a matter of classes alone."""
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _classes(of[0])
    if origin in (Union, UnionType):
        each = [_classes(one) for one in of]
        return tuple(chain.from_iterable(each)) if all(each) else ()
    if hint is None:
        return (NoneType,)
    return (hint,) if origin is None else ()
