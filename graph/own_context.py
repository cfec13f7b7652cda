"""Awaiting work in a context of its own, as a task of its own would be, without one.

A task begins and ends by turns of the event loop, which cost more than what is done in them.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Within(Awaitable[T], Generic[T]):
    """A coroutine that sees and changes the variables of ``context``, and those of nobody else."""

    __slots__ = ("_context", "_coroutine")

    def __init__(self, context: Context, coroutine: Coroutine[Any, Any, T]) -> None:
        self._context, self._coroutine = context, coroutine

    def __await__(self) -> Generator[Any, Any, T]:
        """Pass on what the coroutine waits for, and to it what came of that."""
        turn: Callable[[Any], Any] = self._coroutine.send
        given: Any = None
        while True:
            try:
                awaited = self._context.run(turn, given)
            except StopIteration as end:
                value: T = end.value
                return value
            finally:
                given = None  # an error holds this frame, which must not hold the error
            try:
                turn, given = self._coroutine.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001  # whatever it is, it is the coroutine's
                turn, given = self._coroutine.throw, error
            awaited = None  # the same: what failed holds its error
