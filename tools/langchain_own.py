"""Whether LangChain's functions are still its own: classes override them, tracers wrap them."""

from types import FunctionType, MethodType
from typing import Any


class Own:
    """Some functions of a class, as they were when this was made."""

    def __init__(self, cls: type, *names: str) -> None:
        self._were = {name: getattr(cls, name, None) for name in names}
        self._unwrapped = all(_is_plain(each, cls) for each in self._were.values())

    def of(self, it: object) -> bool:
        """Whether an object or a class has them all, with nothing in their place or around."""
        return self._unwrapped and all(
            _function(it, name) is was for name, was in self._were.items()
        )


def _function(it: object, name: str) -> object:
    found = getattr(it, name, None)
    # A wrapper may answer for what it wraps, whatever it is asked for but its type.
    return found.__func__ if type(found) is MethodType else found


def _is_plain(function: Any, cls: type) -> bool:
    """Whether it is a class's own function: what is wrapped keeps what it is wrapped around."""
    return (
        type(function) is FunctionType
        and function.__module__ == cls.__module__
        and not hasattr(function, "__wrapped__")
    )
