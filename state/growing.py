"""A list that only ever grows, and knows of itself what would else be looked up in all of it.

What is looked up in it takes as long at step 1,000 of a thread as at step 10. What is known is no
state: it follows from the list, is never stored, and is found out anew of a list that was read
back.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from langgraph.types import GraphOutput

T = TypeVar("T")
V = TypeVar("V")


class Growing(list[T]):
    """The values of a channel. They are never changed in place: what is added makes a new list."""

    __slots__ = ("_first", "_known")
    _known: dict[Callable[..., Any], tuple[int, Any, object]]
    _first: "Growing[T] | None"

    def __init__(self, values: Iterable[T] = ()) -> None:
        super().__init__(values)
        self._known = {}
        self._first = None

    def __reduce__(self) -> tuple[type["Growing[T]"], tuple[list[T]]]:
        """Leave behind what is known: who reads it back finds it out anew."""
        return Growing, (list(self),)

    def __copy__(self) -> "Growing[T]":
        """Copy what is known too: LangGraph copies channels to look ahead."""
        return self.with_more(())

    def with_more(self, values: Iterable[T]) -> "Growing[T]":
        """Return a list with values added; what is known of this one is known of its beginning."""
        more = Growing(self)
        more.extend(values)
        more._known, more._first = dict(self._known), self._first
        return more

    def followed_by(self, values: Iterable[T]) -> "Growing[T]":
        """Return a list with values added that others are to follow in the place of.

        What is found out of it later is found out of this one first, and known of its beginning to
        whatever else begins with it.
        """
        more = self.with_more(values)
        more._first = self
        return more

    def known(self, fold: Callable[[V, Sequence[T]], V], start: V, *, of: object = None) -> V:
        """Return what ``fold`` makes of all values; it is given each of them only once.

        Folding part by part comes to the same as folding all at once, and ``fold`` returns a new
        value: lists that grew from the same one share the old one. What it comes to beside the
        values, ``start`` brings along, and ``of`` says: of something else all is folded anew.
        """
        through, value, told = self._known.get(fold, (0, start, of))
        if told != of:
            through, value = 0, start
        if self._first is not None and through < len(self._first):
            through, value = len(self._first), self._first.known(fold, start, of=of)
        if through < len(self):
            value = fold(value, self[through:])
            self._known[fold] = len(self), value, of
        return cast(V, value)

    def note(self, fold: Callable[[V, Sequence[T]], V], value: V) -> None:
        """Have a value known that was found out otherwise; ``fold`` goes on with it."""
        self._known[fold] = len(self), value, None


def growing(values: Sequence[T]) -> Growing[T]:
    """Return values as a list that knows of itself; the same one if it is one."""
    return values if isinstance(values, Growing) else Growing(values)


def plain(out: Any) -> Any:
    """Return what a run gives back with common lists in the place of those that grow.

    ``asyncio`` writes out, shortened, what a coroutine returned; it knows how to shorten a list
    only, and would spend a sixth of a run of 100 steps on the messages of its thread.
    """
    if isinstance(out, GraphOutput):
        return replace(out, value=plain(out.value))
    if isinstance(out, dict):
        return {key: list(v) if isinstance(v, Growing) else v for key, v in out.items()}
    return out
