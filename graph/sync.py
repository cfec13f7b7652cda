"""One loop for callers of all kinds: bridge, background loops, Ctrl-C."""

import asyncio
import atexit
import concurrent.futures
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, wraps
from inspect import signature
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from daruma.state.errors import DarumaError

if TYPE_CHECKING:
    from langgraph._internal._runnable import RunnableCallable

# --- One coroutine on its way through a loop that is not its caller's.

T = TypeVar("T")

_HOME: Final = WeakKeyDictionary[asyncio.AbstractEventLoop, int]()
"""The process that each loop turns in: a fork has a copy, which nobody turns."""


class LeftBehind(DarumaError):
    """Raised for what works on a loop that turns no more, or in the parent of a forked process."""


class OwnLoop(DarumaError, RuntimeError):
    """Raised for a synchronous call on the event loop that it would have to wait for."""


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


# --- Event loops that turn in the background, alive from their first use to the exit.
#
# One serves synchronous callers. What must not hold up a run has a loop of its own, by another
# name.

_EXIT_SECONDS = 5.0
_SERVING: Final = "daruma"

_BLOCKING: Final = 64
"""What an application may have block there at once, such as models that are not async."""

_starting = threading.Lock()


def background_loop(
    name: str = _SERVING, exit_seconds: float = _EXIT_SECONDS
) -> asyncio.AbstractEventLoop:
    """Return the one background loop of a name, started in a daemon thread on first use.

    At the exit, what is under way there is cancelled, and has so many seconds to clean up.
    """
    with _starting:
        return _background_loop(name, exit_seconds)


@cache
def _background_loop(name: str, exit_seconds: float) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(_BLOCKING, thread_name_prefix=f"{name}-blocking"))
    thread = threading.Thread(target=_keep_running, args=[loop], name=name, daemon=True)
    thread.start()
    atexit.register(_stop, loop, thread, exit_seconds)
    return loop


os.register_at_fork(after_in_child=_background_loop.cache_clear)  # its thread stays behind


def _keep_running(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            continue  # raised by a task: it is that task's caller who gets it
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop, thread: threading.Thread, seconds: float) -> None:
    """Cancel what is under way, so that it can clean up; leave behind what does not end."""
    if not thread.is_alive():  # this is a fork of the process that had it
        return
    ended = asyncio.run_coroutine_threadsafe(_cancel_all(), loop)
    with suppress(TimeoutError):
        ended.result(seconds)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(seconds)


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


# --- Ctrl-C in a synchronous run: what its nodes wait for is cancelled, so that it ends at once.
#
# LangGraph has the nodes of a watched stream run on threads, and waits for these before it lets a
# ``KeyboardInterrupt`` out, which Python raises in the main thread alone.


class Waits:
    """What the nodes of one run wait for. There is no lock: a signal may come at any point."""

    def __init__(self) -> None:
        self.interrupted = False
        self._journeys: set[Journey[Any]] = set()

    @contextmanager
    def over(self, journey: Journey[Any]) -> Iterator[None]:
        """Have a journey end with the run, from before it has begun."""
        self._journeys.add(journey)
        try:
            if self.interrupted:
                journey.cancel()
            yield
        finally:
            self._journeys.discard(journey)

    def interrupt(self) -> None:
        """Cancel what is waited for, and what will be."""
        self.interrupted = True
        for journey in list(self._journeys):
            journey.cancel()


_WAITS: ContextVar[Waits | None] = ContextVar("daruma_waits", default=None)


def waits() -> Waits:
    """Return those of the run that this thread works for; new ones outside of any."""
    return _WAITS.get() or Waits()


def interruptible(parts: Iterator[Any]) -> Iterator[Any]:
    """Yield the parts of a run. An interrupt cancels what its nodes do, until it has ended.

    Only where it would be raised as ``KeyboardInterrupt``: in the main thread, and if nobody
    else has taken the signal.
    """
    own = Waits()
    with _interrupting(own):
        while True:
            token = _WAITS.set(own)  # not while whoever reads the parts is at work
            try:
                part = next(parts)
            except StopIteration:
                return
            finally:
                _WAITS.reset(token)
            yield part


@contextmanager
def _interrupting(own: Waits) -> Iterator[None]:
    def interrupt(number: int, frame: FrameType | None) -> None:
        own.interrupt()
        signal.default_int_handler(number, frame)

    if _in_main() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if _in_main() and signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _in_main() -> bool:
    return threading.current_thread() is threading.main_thread()


# --- Nodes are written once, async: this bridge carries them from any thread or loop to one loop.
#
# A coroutine runs where its resources live; who waits for it may be a plain thread, a notebook's
# loop or another event loop. Cancelling crosses the bridge in both directions.

P = ParamSpec("P")


def run(
    coroutine: Coroutine[Any, Any, T],
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    within: Waits | None = None,
) -> T:
    """Run a coroutine on ``loop`` (the background loop when none is given) and wait for its result.

    It sees the caller's context variables. An interrupted wait (``KeyboardInterrupt``) cancels the
    coroutine and waits for its clean-up; a second interrupt gives up on that too. So does an
    interrupt of the run ``within`` which it is waited for, whichever thread that comes to.

    Raises :class:`OwnLoop` when called on the thread of that loop, where waiting would never end.
    """
    loop = loop or background_loop()
    try:
        refuse_own(loop)
    except OwnLoop:
        coroutine.close()
        raise
    journey = Journey(coroutine, loop)
    try:
        with (within or Waits()).over(journey):
            journey.begin()
            return journey.end.result()
    except BaseException:
        journey.cancel()
        concurrent.futures.wait([journey.end])
        raise


def refuse_own(loop: asyncio.AbstractEventLoop) -> None:
    """Raise :class:`OwnLoop` on the thread of a loop that is about to be waited for."""
    if asyncio._get_running_loop() is loop:
        raise OwnLoop("a synchronous call on its own event loop can not end: use the async one")


async def on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine that belongs to ``loop``, from whichever loop this is.

    A cancelled caller cancels the coroutine, waits for its clean-up, and only then is cancelled.
    """
    if asyncio.get_running_loop() is loop:
        return await coroutine
    journey = Journey(coroutine, loop)
    journey.begin()
    end = asyncio.wrap_future(journey.end)
    cancelled: asyncio.CancelledError | None = None
    while not end.done():
        try:
            await asyncio.wait([end])
        except asyncio.CancelledError as error:
            cancelled = error
            journey.cancel()
    result = end.result()
    if cancelled:
        raise cancelled
    return result


def async_node(node: Callable[P, Coroutine[Any, Any, Any]]) -> "RunnableCallable":
    """Make one async function a node for ``invoke``, ``stream``, ``ainvoke`` and ``astream``.

    Error handlers need it too. LangGraph injects by the names and annotations it finds, which are
    kept; the input schema of a node that is sent to is not inferred: give ``input_schema``.
    """
    from langgraph._internal._runnable import RunnableCallable  # the engine: who reads needs none

    from daruma.graph.errors import Leaving

    @wraps(node)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> Any:
        own = waits()
        try:
            return run(node(*args, **kwargs), within=own)
        except asyncio.CancelledError:
            if own.interrupted:  # past the error handlers: the thread stays before this node
                raise Leaving(KeyboardInterrupt()) from None
            raise

    # LangGraph takes apart the code of what is wrapped, to look for graphs in it: 10 ms for all.
    vars(waiting)["__signature__"] = signature(node)
    del waiting.__wrapped__
    return RunnableCallable(waiting, node, trace=False)


# --- Running a coroutine that Ctrl-C and a polite kill end by cancelling it, clean-up included.

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Cancelled(Exception):
    """Raised when a signal ended the run, after its clean-up; ``exit_code`` is 128 and its number.

    It has nothing to do with an error: whoever runs something decides what to say about it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


def run_interruptible(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop. Raises :class:`Cancelled`.

    A second signal of the same kind does not wait for the clean-up.
    """
    received: list[int] = []

    async def watched() -> T:
        _cancel_on_signals(received)
        return await coroutine

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if not received:
            raise
        raise Cancelled(received[0]) from None


def _cancel_on_signals(received: list[int]) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel(number: int) -> None:
        received.append(number)
        loop.remove_signal_handler(number)
        if task:
            task.cancel()

    for number in SIGNALS:
        loop.add_signal_handler(number, cancel, number)
