"""What an update makes of the state: the same as LangGraph's channels, and nothing is stored."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, get_type_hints

from langgraph.channels import DeltaChannel, EphemeralValue

from daruma.state.channels import State, Update

Reducer = Callable[[Any, Any], Any]

_NOTHING: Final = object()


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
