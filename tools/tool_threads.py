"""Threads for tools that block: their own, so that a slow tool holds up nothing but other tools."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from typing_extensions import override

P = ParamSpec("P")
T = TypeVar("T")

LIMIT = 32
"""Blocking tools that run at once; more wait their turn."""


class NotStarted(asyncio.CancelledError):
    """Raised in place of a plain cancellation when the work had not begun, and never will."""


class ToolThreads(Executor):
    """Daemon threads, started as needed: a tool that hangs does not keep the process from ending.

    The standard library's pool waits for its threads when the interpreter exits.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._threads = 0
        self._starting = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    @override
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        self._queue.put((future, partial(fn, *args, **kwargs)))
        with self._starting:
            if not self._idle.acquire(blocking=False) and self._threads < self._limit:
                self._threads += 1
                name = f"daruma-tool-{self._threads}"
                threading.Thread(target=self._serve, name=name, daemon=True).start()
        return future

    def _serve(self) -> None:
        while True:
            _carry_out(*self._next())

    def _next(self) -> tuple[Future[Any], Callable[[], Any]]:
        try:
            return self._queue.get_nowait()
        except Empty:
            self._idle.release()
            return self._queue.get()


def _carry_out(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except StopIteration as error:  # no future of asyncio takes it: its waiter would never wake
        future.set_exception(RuntimeError(f"the tool raised StopIteration: {error}"))
    except BaseException as error:  # noqa: BLE001  # whoever waits gets it, whatever it is
        future.set_exception(error)


_THREADS = ToolThreads()


async def in_tool_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work on one of the tools' threads, with a copy of the context variables.

    A cancellation goes on at once; work that has begun is left to itself. Raises
    :class:`NotStarted`, which is a cancellation, if it had not.
    """
    future = _THREADS.submit(partial(copy_context().run, work, *args, **kwargs))
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.cancel():
            raise NotStarted from None
        raise
