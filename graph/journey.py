"""One coroutine on its way through a loop that is not its caller's."""

import asyncio
import concurrent.futures
import os
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from daruma.state.errors import DarumaError

T = TypeVar("T")

_HOME: Final = WeakKeyDictionary[asyncio.AbstractEventLoop, int]()
"""The process that each loop turns in: a fork has a copy, which nobody turns."""


class LeftBehind(DarumaError):
    """Raised for what works on a loop that turns no more, or in the parent of a forked process."""


class Journey(Generic[T]):
    """A coroutine for ``loop``. ``end`` receives whatever becomes of it, also once cancelled.

    It is begun by hand, so that whoever begins it is already prepared to be interrupted.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> None:
        self.end: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.end.set_running_or_notify_cancel()  # no cancelling but by `cancel`, which cleans up
        self._coroutine = coroutine
        self._loop = loop
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Start it, in the context of the caller; callable from every thread."""
        try:
            _refuse_left_behind(self._loop)
            self._loop.call_soon_threadsafe(self._start)
        except (RuntimeError, LeftBehind) as error:  # the first: closed just now
            self._coroutine.close()
            self.end.set_exception(error)

    def cancel(self) -> None:
        """Ask it to end; callable from every thread, at any time."""
        with suppress(RuntimeError):  # a closed loop has cancelled it already
            self._loop.call_soon_threadsafe(self._cancel)

    def _start(self) -> None:
        if not self.end.done():
            self._task = self._loop.create_task(self._coroutine)
            self._task.add_done_callback(self._finish)

    def _cancel(self) -> None:
        if self._task:
            self._task.cancel()
        elif not self.end.done():
            self._coroutine.close()
            self.end.set_exception(asyncio.CancelledError())

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.end.set_exception(asyncio.CancelledError())
        elif error := task.exception():
            self.end.set_exception(error)
        else:
            self.end.set_result(task.result())


def _refuse_left_behind(loop: asyncio.AbstractEventLoop) -> None:
    if loop.is_closed():
        raise LeftBehind(
            "the event loop that this was opened on has ended: open the database and run the graph "
            "within one asyncio.run, or use open_postgres, whose loop lasts"
        )
    own = os.getpid()
    home = _HOME.setdefault(loop, own)
    if home != own:
        raise LeftBehind(
            f"what process {home} has opened does not come along in a fork: call open_postgres "
            f"and build_graph in process {own} itself"
        )
