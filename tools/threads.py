"""Threads for work that blocks or may hang: off the event loop, and cancelled with their caller."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from functools import cache, partial
from queue import SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

from typing_extensions import override

# --- A pool of threads for work that may hang.
#
# The standard library's waits for its threads when the interpreter exits, and work that hangs keeps
# its place in it for ever.

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
                try:
                    self._start()
                except RuntimeError:
                    future.cancel()
                    raise
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
        return lambda: None  # it was cancelled before it had begun: nobody waits
    try:
        return partial(future.set_result, work())
    except (StopIteration, GeneratorExit) as error:
        # No future of asyncio takes the one: its waiter would never wake. The other says to whom it
        # is raised in that his own coroutine is closed.
        told = RuntimeError(f"it raised {type(error).__name__}: {error}")
        return partial(future.set_exception, told)
    except BaseException as error:  # noqa: BLE001  # whoever waits gets it, whatever it is
        return partial(future.set_exception, error)


# --- Threads for tools that block: their own, so that a slow tool holds up nothing but other tools.

MOST_TOOL_THREADS: Final = 64
"""Blocking tools that run at once; more wait their turn. Those that compute share one core."""

MOST_MODEL_THREADS: Final = 256
"""Requests to models whose client blocks; they wait for a network."""

LEFT_LIMIT: Final = 512
"""Tools that hang and were given up, beside those; from then on they keep others waiting."""


class NotStarted(asyncio.CancelledError):
    """Raised in place of a plain cancellation when the work had not begun, and never will."""


@cache
def _daemons(name: str, limit: int) -> DaemonThreads:
    return DaemonThreads(name, limit, LEFT_LIMIT)


os.register_at_fork(after_in_child=_daemons.cache_clear)  # its threads stay behind


async def in_tool_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work on one of the tools' threads, with a copy of the context variables.

    A cancellation goes on at once; work that has begun is left to itself. Raises
    :class:`NotStarted`, which is a cancellation, if it had not.
    """
    threads = _daemons("daruma-tool", MOST_TOOL_THREADS)
    return await _in(threads, partial(work, *args, **kwargs))


async def in_model_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the same on the threads of models whose client blocks: a tool may wait for a model."""
    threads = _daemons("daruma-model", MOST_MODEL_THREADS)
    return await _in(threads, partial(work, *args, **kwargs))


async def _in(threads: DaemonThreads, work: Callable[[], T]) -> T:
    future = threads.submit(partial(copy_context().run, work))
    ended = asyncio.get_running_loop().create_future()
    future.add_done_callback(partial(_wake, ended))
    try:
        await ended  # `wrap_future` takes two turns of the loop and as much again
        return future.result()
    except CancelledError as error:  # what the work waited for was
        raise asyncio.CancelledError(*error.args) from None
    except asyncio.CancelledError:
        if future.cancel():
            raise NotStarted from None
        threads.leave(future)
        raise


def _wake(ended: "asyncio.Future[None]", _: object) -> None:
    """Have whoever waits go on; nobody does where the loop is closed."""
    with suppress(RuntimeError):
        ended.get_loop().call_soon_threadsafe(_end, ended)


def _end(ended: "asyncio.Future[None]") -> None:
    if not ended.done():
        ended.set_result(None)


# --- Blocking work off the event loop that is never left running behind a cancellation.
#
# It has threads of its own. The event loop's are six on two cores, and whatever an application does
# there, such as asking a model that blocks, would hold up every run; some of it for good.

_AT_AN_END: Final = "cannot schedule new futures after"
"""What Python says once its threads take nothing more."""

MOST_FILE_THREADS: Final = 32
"""Pieces of work that are done at once; they are short, and more wait their turn."""


@cache
def _file_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_FILE_THREADS, thread_name_prefix="daruma-work")


os.register_at_fork(after_in_child=_file_threads.cache_clear)  # its threads stay behind


async def to_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what `asyncio.to_thread` does, on threads that only this package uses."""
    here = partial(copy_context().run, work, *args, **kwargs)
    loop = asyncio.get_running_loop()
    try:
        future = loop.run_in_executor(_file_threads(), here)
    except RuntimeError as error:
        if not str(error).startswith(_AT_AN_END):  # as where a process may have no thread more
            raise
        return here()  # the process ends: nobody is held up any more
    return await future


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the same, but a cancellation goes on only when the thread has ended.

    Whoever catches the cancellation may restore files; a late write must not land after that.
    """
    task = asyncio.ensure_future(to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await wait_for_end(task)
        raise


async def wait_for_end(future: "asyncio.Future[T]") -> None:
    """Wait for the end of `future`, through further cancellations; its outcome is dropped.

    Only for work that is known to end soon, from a caller that raises its `CancelledError` next.
    """
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
    if not future.cancelled():
        future.exception()


@asynccontextmanager
async def entered_in_thread(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave a context that blocks; one that is still being entered is left as well."""
    entering = asyncio.ensure_future(to_thread(manager.__enter__))
    try:
        yield await asyncio.shield(entering)
    finally:
        await wait_for_end(entering)
        if not entering.cancelled() and not entering.exception():
            await in_thread(manager.__exit__, None, None, None)
