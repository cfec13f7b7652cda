"""A pool of threads for work that may hang.

The standard library's waits for its threads when the interpreter exits, and work that hangs keeps
its place in it for ever.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
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
        self._idle = 0
        """Threads that take what comes next, and have been promised nothing yet."""
        self._waiting = 0
        """Pieces of work that no thread was free for."""
        self._served: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()

    @override
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have work done. Raises ``RuntimeError``, and forgets it, if there are no more threads."""
        future: Future[T] = Future()
        with self._lock:
            self._queue.put((future, partial(fn, *args, **kwargs)))
            if self._idle:
                self._idle -= 1
            else:
                self._waiting += 1
                self._start_for(future)
        return future

    def leave(self, future: Future[Any]) -> None:
        """Leave work that has begun to itself: nobody waits for it, and others get its place."""
        with self._lock:
            if future in self._served and self._left < self._left_limit:
                self._served.remove(future)
                self._threads -= 1
                self._left += 1
                if self._waiting:
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
            self._waiting -= 1

    def _serve(self) -> None:
        while self._keeps_its_place(*self._queue.get()):
            pass

    def _keeps_its_place(self, future: Future[Any], work: Callable[[], Any]) -> bool:
        """Carry out a piece of work; return whether this thread is to take another one.

        That it is free for one is known before what came of this one is: whoever is woken by that
        has the next done here, and not on a thread more.
        """
        with self._lock:
            self._served.add(future)
        tell = _carried_out(future, work)
        with self._lock:
            left = future not in self._served
            self._served.discard(future)
            if left:
                self._left -= 1
            elif self._waiting:
                self._waiting -= 1
            else:
                self._idle += 1
        tell()
        return not left


def _carried_out(future: Future[Any], work: Callable[[], Any]) -> Callable[[], None]:
    """Carry out work, and return what tells of it whoever waits."""
    if not future.set_running_or_notify_cancel():
        return _nobody
    try:
        return partial(future.set_result, work())
    except (StopIteration, GeneratorExit) as error:
        # No future of asyncio takes the one: its waiter would never wake. The other says to whom it
        # is raised in that his own coroutine is closed.
        told = RuntimeError(f"it raised {type(error).__name__}: {error}")
        return partial(future.set_exception, told)
    except BaseException as error:  # noqa: BLE001  # whoever waits gets it, whatever it is
        return partial(future.set_exception, error)


def _nobody() -> None:
    """Tell nobody: the work was cancelled before it had begun."""
