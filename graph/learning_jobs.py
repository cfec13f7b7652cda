"""Pieces of work beside the runs: bounded, and on a loop of their own (EV-02)."""

import asyncio
import atexit
import concurrent.futures
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from weakref import WeakSet

from daruma.graph.sync import background_loop

# --- One piece of work that is done beside runs, and for which nobody waits for ever.

CLEANING_SECONDS: Final = 1.0
"""How long cancelled work may take to clean up, while it is waited for."""

End = concurrent.futures.Future[None]


class LeftUndone(Exception):
    """What becomes of a job that was not done when it could be waited for no longer."""


def _end() -> End:
    end = End()
    end.set_running_or_notify_cancel()  # nobody who waits for it can take it away
    return end


@dataclass(eq=False)
class Job:
    """Work, and the ``place`` that it needs, which is not to be closed before.

    ``told`` is given what was raised, or None. At most ``at_once`` of its like are done at once.
    ``over`` is set once it counts no more, ``gone`` once nothing of it is under way.
    """

    work: Callable[[], Coroutine[Any, Any, None]]
    told: Callable[[BaseException | None], None]
    at_once: int
    place: object = None
    task: "asyncio.Task[None] | None" = None
    over: End = field(default_factory=_end)
    gone: End = field(default_factory=_end)


async def within(seconds: float, work: Awaitable[None]) -> None:
    """Await work for so long. What ignores its cancellation must not hold its place for ever.

    Raises TimeoutError, and what the work raises.
    """
    working = asyncio.ensure_future(work)
    # What was raised is looked at, so that asyncio does not report that nobody has done so.
    working.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        done, _ = await asyncio.wait([working], timeout=seconds)
    except asyncio.CancelledError:
        working.cancel()
        await asyncio.wait([working], timeout=CLEANING_SECONDS)
        raise
    if not done:
        _left_behind.add(working)
        working.add_done_callback(_left_behind.discard)
        working.cancel()
        raise TimeoutError(f"it was not done within {seconds:g} s")
    working.result()


_left_behind: set["asyncio.Future[None]"] = set()
"""What was cancelled and has not ended: asyncio itself would forget it, and complain of that."""


# --- The jobs that are not done yet: bounded, and on a loop of their own (EV-02).
#
# That loop is not the one that serves runs: work that never gives its thread back holds up nothing
# but other work of the kind.

SECONDS: Final = 60.0
"""How long one job may take. After that it is cancelled, and not waited for."""

EXIT_SECONDS: Final = 5.0
"""How long what is pending is waited for, where its storage is closed or the process ends."""

_LOOP: Final = "daruma-evolution"

_lock = threading.RLock()
"""Held for as long as it takes to look at a list.

Meanwhile Python may collect a stream that was left open, on the same thread: that ends a run, which
is handed over.
"""

_busy: set["Jobs"] = set()
"""Those with something pending; who dropped their graph does not drop its jobs."""

_all: WeakSet["Jobs"] = WeakSet()


class Jobs:
    """The jobs of one graph that are not done yet, in their order. Callable from every thread."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._pending: list[Job] = []
        _all.add(self)

    def take(self, job: Job, most: int) -> bool:
        """Take a job on if fewer than ``most`` are pending; return at once whether it was."""
        loop = evolution_loop()
        with _lock:
            if len(self._pending) >= most:
                return False
            self._pending.append(job)
            _busy.add(self)
        loop.call_soon_threadsafe(self._begin, context=Context())  # it is no part of the run
        return True

    def drain(self, seconds: float, place: object = None) -> bool:
        """Wait until what is pending is done, so long at most; return whether all of it was.

        The rest is cancelled. With a ``place``, only what needs that one counts.
        """
        jobs = self._found(place)
        left = concurrent.futures.wait([each.over for each in jobs], seconds).not_done
        gone = [each.gone for each in self._give_up(jobs)] if left else []
        concurrent.futures.wait(gone, CLEANING_SECONDS)
        return not left

    async def adrain(self, seconds: float, place: object = None) -> bool:
        """Do the same, asynchronously."""
        jobs = self._found(place)
        try:
            left = await _left([each.over for each in jobs], seconds)
        except asyncio.CancelledError:  # a second Ctrl-C: there is no more time at all
            self._give_up(jobs)
            raise
        gone = [each.gone for each in self._give_up(jobs)] if left else []
        await _left(gone, CLEANING_SECONDS)
        return not left

    def forget(self) -> None:
        """Forget all jobs: they are those of the process that this one was forked from."""
        self._pending = []

    def _found(self, place: object) -> list[Job]:
        with _lock:
            return [each for each in self._pending if place is None or each.place is place]

    def _give_up(self, jobs: Iterable[Job]) -> list[Job]:
        """Cancel jobs, which count no more, and return those that were under way."""
        left = [each for each in jobs if self._let_go(each, LeftUndone("it took too long"))]
        with suppress(RuntimeError):  # the loop is closed, and all of it cancelled
            for each in left:
                if each.task:
                    evolution_loop().call_soon_threadsafe(each.task.cancel)
        return [each for each in left if each.task]

    def _begin(self) -> None:
        """Begin what may be begun. Called on the loop only."""
        with _lock:
            running = sum(each.task is not None for each in self._pending)
            for job in [each for each in self._pending if each.task is None]:
                if running < job.at_once:
                    running += 1
                    job.task = asyncio.ensure_future(self._do(job))

    async def _do(self, job: Job) -> None:
        try:
            await within(self._seconds, job.work())
        except BaseException as error:  # noqa: BLE001 - anybody's store, and nobody waits for it
            self._let_go(job, error)
        else:
            self._let_go(job, None)
        finally:
            job.gone.set_result(None)
            asyncio.get_running_loop().call_soon(self._begin, context=Context())

    def _let_go(self, job: Job, error: BaseException | None) -> bool:
        """Take a job off the list, and tell how it ended; return whether it was on it."""
        with _lock:
            if job not in self._pending:
                return False
            self._pending.remove(job)
            if not self._pending:
                _busy.discard(self)
        job.told(error)
        job.over.set_result(None)
        return True


def busy() -> list[Jobs]:
    """Return those with something pending, in this process."""
    with _lock:
        return [*_busy]


async def adrain_place(place: object, seconds: float = EXIT_SECONDS) -> None:
    """Wait for all jobs that need a place which is about to be closed; cancel what is not done."""
    await asyncio.gather(*(each.adrain(seconds, place) for each in busy()))


async def _left(futures: Iterable[End], seconds: float) -> bool:
    """Wait for futures, so long at most; return whether any is not done."""
    waiting = [asyncio.wrap_future(each) for each in futures]
    return bool(waiting and (await asyncio.wait(waiting, timeout=seconds))[1])


@cache
def evolution_loop() -> asyncio.AbstractEventLoop:
    """Return the loop that all of it is done on, in this process."""
    # It stops at the exit, after what is registered from now on.
    loop = background_loop(_LOOP, CLEANING_SECONDS)
    atexit.register(_drain_all)
    return loop


def _drain_all() -> None:
    end = time.monotonic() + EXIT_SECONDS
    for each in busy():
        each.drain(max(0.0, end - time.monotonic()))


def _begin_anew() -> None:
    global _lock  # noqa: PLW0603 - another thread may have held it in the fork's parent
    _lock = threading.RLock()
    _busy.clear()
    evolution_loop.cache_clear()
    for each in _all:
        each.forget()


os.register_at_fork(after_in_child=_begin_anew)
