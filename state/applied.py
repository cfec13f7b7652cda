"""What channels make of the state, and an update of it: the same as LangGraph, at less."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache, partial
from typing import Any, Final, get_type_hints

from langgraph.channels import DeltaChannel, EphemeralValue

from daruma.state.channels import State, Update

Reducer = Callable[[Any, Any], Any]

_NOTHING: Final = object()


def state_of(values: Mapping[str, Any]) -> State:
    """Return the state of what channels hold: the same as ``State(**values)``, at a third of it."""
    state = object.__new__(State)
    given = vars(state)
    for name, default, factory in _fields():
        given[name] = values[name] if name in values else factory() if factory else default
    return state


@cache
def _fields() -> tuple[tuple[str, Any, Callable[[], Any] | None], ...]:
    return tuple(
        (each.name, each.default, None if each.default_factory is MISSING else each.default_factory)
        for each in fields(State)
    )


def applied(state: State, update: Update) -> State:
    """Return the state after a node's update: what was there for one superstep only is gone.

    Of the update's values none is an ``Overwrite``; our nodes write none.
    """
    gone, reducers = _channels()
    after = object.__new__(State)  # `replace` sets each of many fields by itself
    values = vars(after)
    values.update(vars(state))
    values.update(gone)
    for name, value in update.items():
        if name in reducers:
            values[name] = reducers[name](getattr(state, name), value)
    return after


@cache
def _channels() -> tuple[Mapping[str, None], Mapping[str, Reducer]]:
    """Return what does not outlast a superstep, and how each channel takes what is written."""
    kinds = {
        name: getattr(hint, "__metadata__", (_NOTHING,))[-1]
        for name, hint in get_type_hints(State, include_extras=True).items()
    }
    gone = {name: None for name, kind in kinds.items() if kind is EphemeralValue}
    return gone, {name: _reducer(kind) for name, kind in kinds.items()}


def _reducer(kind: Any) -> Reducer:
    if isinstance(kind, DeltaChannel):
        return partial(_batched, kind.reducer)
    if kind is _NOTHING or kind is EphemeralValue:
        return _newest
    reducer: Reducer = kind
    return reducer


def _batched(reducer: Callable[[Any, list[Any]], Any], known: Any, write: Any) -> Any:
    return reducer(known, [write])


def _newest(_: object, write: Any) -> Any:
    return write
