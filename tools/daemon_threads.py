"""A pool of threads for work that may hang.

The standard library's waits for its threads when the interpreter exits, and work that hangs keeps
its place in it for ever.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from typing_extensions import override

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """Daemon threads, started as needed, ``limit`` of them; more work waits its turn.

    Of work that was left to itself, ``left_limit`` pieces take nobody's place.
    """

    def __init__(self, name: str, limit: int, left_limit: int = 0) -> None:
        self._name = name
        self._limit = limit
        self._left_limit = left_limit
        self._threads = 0
        self._left = 0
        self._served: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    @override
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have work done. Raises ``RuntimeError``, and forgets it, if there are no more threads."""
        future: Future[T] = Future()
        self._queue.put((future, partial(fn, *args, **kwargs)))
        with self._lock:
            if not self._idle.acquire(blocking=False):
                self._start_for(future)
        return future

    def leave(self, future: Future[Any]) -> None:
        """Leave work that has begun to itself: nobody waits for it, and others get its place."""
        with self._lock:
            if future in self._served and self._left < self._left_limit:
                self._served.remove(future)
                self._threads -= 1
                self._left += 1
                if not self._queue.empty():
                    with suppress(RuntimeError):  # the others come to it
                        self._start()

    def _start_for(self, future: Future[Any]) -> None:
        try:
            self._start()
        except RuntimeError:
            future.cancel()
            raise

    def _start(self) -> None:
        if self._threads < self._limit:
            name = f"{self._name}-{self._threads + self._left + 1}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._threads += 1

    def _serve(self) -> None:
        while self._keeps_its_place(*self._next()):
            pass

    def _next(self) -> tuple[Future[Any], Callable[[], Any]]:
        try:
            return self._queue.get_nowait()
        except Empty:
            self._idle.release()
            return self._queue.get()

    def _keeps_its_place(self, future: Future[Any], work: Callable[[], Any]) -> bool:
        """Carry out a piece of work; return whether this thread is to take another one."""
        with self._lock:
            self._served.add(future)
        _carry_out(future, work)
        with self._lock:
            left = future not in self._served
            self._served.discard(future)
            self._left -= left
        return not left


def _carry_out(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(work())
    except StopIteration as error:  # no future of asyncio takes it: its waiter would never wake
        future.set_exception(RuntimeError(f"it raised StopIteration: {error}"))
    except BaseException as error:  # noqa: BLE001  # whoever waits gets it, whatever it is
        future.set_exception(error)
