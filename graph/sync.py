"""One way to run: everything is asynchronous, and who calls synchronously waits for one loop."""

import asyncio
import atexit
import concurrent.futures
import os
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from copy import copy
from functools import cache, partial
from typing import Any, Final, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from daruma.state.errors import DarumaError
from daruma.tools.threads import in_thread

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

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        context: Context | None = None,
    ) -> None:
        self.end: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.end.set_running_or_notify_cancel()  # no cancelling but by `cancel`, which cleans up
        self._coroutine = coroutine
        self._loop = loop
        self._context = context or copy_context()
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        """Start it, in its context; callable from every thread."""
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
            self._task = self._loop.create_task(self._coroutine, context=self._context)
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


# --- Waiting for a coroutine from any thread, awaiting it from any loop, iterating on a thread.
#
# A coroutine runs where its resources live; who waits for it may be a plain thread, a notebook's
# loop or another event loop. Cancelling crosses in both directions.


def run(
    coroutine: Coroutine[Any, Any, T],
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    context: Context | None = None,
) -> T:
    """Run a coroutine on ``loop`` (the background loop when none is given) and wait for its result.

    It sees the caller's context variables, or is run in ``context``. An interrupted wait
    (``KeyboardInterrupt``) cancels the coroutine and waits for its clean-up; a second interrupt
    gives up on that too.

    Raises :class:`OwnLoop` when called on the thread of that loop, where waiting would never end.
    """
    loop = loop or background_loop()
    try:
        refuse_own(loop)
    except OwnLoop:
        coroutine.close()
        raise
    journey = Journey(coroutine, loop, context)
    try:
        journey.begin()
        return journey.end.result()
    except BaseException:
        journey.cancel()
        concurrent.futures.wait([journey.end])
        raise


def iterate(parts: AsyncIterator[T]) -> Iterator[T]:
    """Yield what an asynchronous generator does, on a thread that may wait.

    It goes on, on the background loop, only while the next part is waited for. All of it sees the
    context variables of whoever asked for the first part. Who stops reading ends it.
    """
    loop, context, end = background_loop(), copy_context(), object()
    generator: Any = parts

    async def step() -> Any:
        return await anext(parts, end)

    try:
        while (part := run(step(), loop=loop, context=context)) is not end:
            yield part
    finally:
        # A second interrupt gives up on what still runs, a fork has a copy that nobody turns.
        alive = not loop.is_closed() and _HOME.get(loop) == os.getpid()
        if generator.ag_frame is not None and not generator.ag_running and alive:
            _finish(generator, loop, context)


def _finish(parts: AsyncGenerator[Any], loop: asyncio.AbstractEventLoop, context: Context) -> None:
    if running_loop() is loop:  # what nobody reads any more was collected there
        _ENDING.add(ending := loop.create_task(_closed(parts), context=context))
        ending.add_done_callback(_ENDING.discard)
        return
    closing = Journey(_closed(parts), loop, context)
    closing.begin()
    # Python may collect it in the midst of anything, and what is held there may be waited for here.
    if concurrent.futures.wait([closing.end], _CLOSING_SECONDS).done:
        closing.end.result()


_CLOSING_SECONDS: Final = 30.0
"""How long who stops reading waits for the clean-up."""

_ENDING: Final[set["asyncio.Task[None]"]] = set()


async def _closed(parts: AsyncGenerator[Any]) -> None:
    await parts.aclose()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs on this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def refuse_own(loop: asyncio.AbstractEventLoop) -> None:
    """Raise :class:`OwnLoop` on the thread of a loop that is about to be waited for."""
    if running_loop() is loop:
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


# --- Checkpointers that are bound to one loop, or have no asynchronous methods at all.

SaverT = TypeVar("SaverT", bound=BaseCheckpointSaver[Any])


def saver_on_any_loop(saver: SaverT) -> SaverT:
    """Return a checkpointer whose asynchronous methods can be awaited on any loop.

    One that knows its loop, as LangGraph's asynchronous ones do, is asked there. One that has
    synchronous methods alone is asked on threads. Ours, and the one in memory, are as they are.
    """
    ours = any(each.__module__.startswith("daruma.") for each in type(saver).__mro__)
    if ours or type(saver) is InMemorySaver:
        return saver
    own = copy(saver)
    own.__class__ = _on_any_loop(cast("Any", type(saver)))
    return own


@cache
def _on_any_loop(kind: type[Any]) -> type[Any]:
    return type(kind.__name__, (AnyLoop, kind), {"__module__": kind.__module__})


class AnyLoop(BaseCheckpointSaver[Any]):
    """Carries each call to where the checkpointer's own can be made."""

    waits = False
    """Whether it is known to have synchronous methods alone."""

    async def aget_tuple(self, config: RunnableConfig) -> Any:
        return await self._made("get_tuple", config)

    async def alist(
        self, config: RunnableConfig | None, **search: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for each in await self._made("list", config, **search):
            yield each

    async def aput(self, *args: Any, **options: Any) -> Any:
        return await self._made("put", *args, **options)

    async def aput_writes(
        self, config: RunnableConfig, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        # LangGraph looks for `task_path` in the signature; without it results lose their order.
        await self._made("put_writes", config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._made("delete_thread", thread_id)

    async def aget_delta_channel_history(self, **asked: Any) -> Any:
        return await self._made("get_delta_channel_history", **asked)

    async def _made(self, name: str, *args: Any, **options: Any) -> Any:
        loop, own = getattr(self, "loop", None), super()

        async def awaited() -> Any:
            found = getattr(own, f"a{name}")(*args, **options)
            return [each async for each in found] if name == "list" else await found

        if not self.waits:
            try:
                return await (on(loop, awaited()) if loop else awaited())
            except NotImplementedError:
                self.waits = True
        made = partial(getattr(own, name), *args, **options)
        return await in_thread(lambda: [*made()] if name == "list" else made())


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
