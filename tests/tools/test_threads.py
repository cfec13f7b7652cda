"""Blocking work is never left running behind a cancellation."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any

import pytest

from daruma.tools import threads
from daruma.tools.threads import (
    MOST_TOOL_THREADS,
    DaemonThreads,
    NotStarted,
    in_thread,
    in_tool_thread,
)


async def test_a_result_and_an_error_come_back() -> None:
    """The work's own outcome is the caller's."""
    assert await in_thread(max, 1, 2) == 2
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 1, 0)


async def test_a_cancellation_waits_for_the_thread() -> None:
    """Cancelled twice, the caller still ends only after the work has."""
    started, release, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        release.wait(10)
        done.set()

    task = asyncio.ensure_future(in_thread(work))
    await asyncio.to_thread(started.wait, 10)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    release.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()


class Full(ThreadPoolExecutor):
    """Threads of a process that may have no more: work waits, and is refused all the same."""

    def submit(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("can't start new thread")


async def test_work_that_may_be_queued_is_not_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could be done twice."""
    done: list[int] = []
    monkeypatch.setattr(threads, "_file_threads", Full)

    with pytest.raises(RuntimeError, match="start new thread"):
        await in_thread(done.append, 1)

    assert done == []


AT_EXIT = """
import asyncio, atexit
from daruma.tools.threads import in_thread
atexit.register(lambda: print(asyncio.run(in_thread(max, 1, 2))))
asyncio.run(in_thread(max, 1, 2))
"""


def test_work_is_done_at_the_exit_too() -> None:
    """Threads take nothing more by then."""
    command = [sys.executable, "-W", "error", "-c", AT_EXIT]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert (ended.stdout, ended.stderr) == ("2\n", "")


# --- Work that hangs keeps neither the process nor other work.


def test_no_more_threads_are_started_than_needed() -> None:
    """One that is idle takes the next piece of work; more than the limit wait."""
    threads = DaemonThreads("work", 2)
    both = threading.Barrier(3)
    waiting = [threads.submit(both.wait) for _ in range(2)]
    late = threads.submit(lambda: threading.current_thread().name)

    both.wait(5)

    assert late.result(5) in {"work-1", "work-2"}
    assert {future.result(5) for future in waiting} <= {0, 1, 2}
    names = {threads.submit(lambda: threading.current_thread().name).result(5) for _ in range(20)}
    assert names <= {"work-1", "work-2"}


def test_who_is_woken_by_the_end_of_work_finds_its_thread_free() -> None:
    """Pieces of work one after the other run on one thread, however soon the next one comes."""
    threads = DaemonThreads("chained", 8)
    names: SimpleQueue[str] = SimpleQueue()

    def work() -> str:
        return threading.current_thread().name

    def go_on(ended: Future[str]) -> None:  # on the thread itself, before it looks for more
        names.put(ended.result())
        if names.qsize() < 20:
            threads.submit(work).add_done_callback(go_on)
        else:
            done.set()

    done = threading.Event()
    threads.submit(work).add_done_callback(go_on)

    assert done.wait(30)
    assert {names.get() for _ in range(20)} == {"chained-1"}


class Hanging:
    """Pieces of work that have begun and do not end."""

    def __init__(self, threads: DaemonThreads, number: int) -> None:
        self.gate = threading.Event()
        begun = threading.Barrier(number + 1)

        def hang() -> str:
            begun.wait(30)
            self.gate.wait()
            return threading.current_thread().name

        self.futures: list[Future[Any]] = [threads.submit(hang) for _ in range(number)]
        begun.wait(30)


def test_work_that_was_left_gives_its_place_away() -> None:
    """Also to what is waiting already."""
    threads = DaemonThreads("work", 2, left_limit=2)
    hanging = Hanging(threads, 2)
    waiting = threads.submit(lambda: "ran")

    threads.leave(hanging.futures[0])
    ran = waiting.result(30)
    hanging.gate.set()

    assert ran == "ran"


def test_no_more_threads_than_the_limit_work_once_what_was_left_has_ended() -> None:
    """A thread that has lost its place ends with its work."""
    threads = DaemonThreads("leaving", 1, left_limit=1)
    hanging = Hanging(threads, 1)
    threads.leave(hanging.futures[0])
    assert threads.submit(lambda: "ran").result(30) == "ran"
    (left,) = named("leaving-1")

    hanging.gate.set()
    left.join(30)

    assert not left.is_alive()
    assert hanging.futures[0].result() == "leaving-1"
    assert threads.submit(lambda: threading.current_thread().name).result(30) == "leaving-2"


def test_no_more_work_is_left_than_the_limit() -> None:
    """Then it keeps its place, and others wait for it: threads do not grow without a bound."""
    threads = DaemonThreads("bounded", 2, left_limit=1)
    hanging = Hanging(threads, 2)
    for each in hanging.futures:
        threads.leave(each)
    held = Hanging(threads, 1)
    waiting = threads.submit(lambda: "ran")
    started = len(named("bounded-"))
    held.gate.set()

    assert started == len([*hanging.futures, *held.futures])
    assert waiting.result(30) == "ran"
    hanging.gate.set()


def test_leaving_work_that_has_ended_keeps_no_other_from_its_turn() -> None:
    """Who gives up may be a moment late."""
    threads = DaemonThreads("late", 1, left_limit=1)
    ended = threads.submit(lambda: "ended")
    ended.result(30)

    threads.leave(ended)

    assert [threads.submit(lambda: "ran").result(30) for _ in range(3)] == ["ran"] * 3


def named(start: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith(start)]


# --- Blocking tools have threads of their own, that nothing waits for.

WORD: ContextVar[str] = ContextVar("WORD", default="unset")


async def test_work_runs_on_a_daemon_thread_with_the_callers_context() -> None:
    """What LangGraph's ``interrupt`` needs lies in context variables."""
    WORD.set("mine")

    word, thread = await in_tool_thread(lambda: (WORD.get(), threading.current_thread()))

    assert word == "mine"
    assert thread.daemon
    assert thread.name.startswith("daruma-tool-")


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), TimeoutError("own")])
async def test_what_work_raises_reaches_its_caller(error: BaseException) -> None:
    """Whatever it is."""

    async def caught() -> BaseException | None:
        try:
            await in_tool_thread(fall, error)
        except BaseException as raised:  # noqa: BLE001  # SystemExit would end the test's loop
            return raised
        return None

    assert repr(await caught()) == repr(error)


def fall(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [StopIteration("end"), GeneratorExit("end")])
async def test_what_would_stop_its_caller_is_told_as_an_error(error: BaseException) -> None:
    """No future of asyncio takes the one, and the other would close who waits."""
    with pytest.raises(RuntimeError, match=f"it raised {type(error).__name__}: end"):
        await asyncio.wait_for(in_tool_thread(fall, error), 5)


async def test_what_work_waited_for_was_cancelled() -> None:
    """It is told as any other cancellation from within, not as an error of the tool's."""
    cancelled: Future[None] = Future()
    cancelled.cancel()

    with pytest.raises(asyncio.CancelledError):
        await in_tool_thread(cancelled.result)


async def test_blocking_tools_hold_up_nothing_else() -> None:
    """TL-21: asyncio's own pool stays free, however many tools hang."""
    gate = threading.Event()
    held = [asyncio.ensure_future(in_tool_thread(gate.wait)) for _ in range(MOST_TOOL_THREADS)]

    free = await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5)
    gate.set()

    assert free == "free"
    assert await asyncio.gather(*held) == [True] * MOST_TOOL_THREADS


async def test_cancelled_work_that_had_not_begun_never_runs() -> None:
    """And this is said apart from work that was given up half way."""
    gate, ran = threading.Event(), threading.Event()
    held = [asyncio.ensure_future(in_tool_thread(gate.wait)) for _ in range(MOST_TOOL_THREADS)]
    late = asyncio.ensure_future(_how_it_ended(ran))
    await asyncio.sleep(0)

    late.cancel()
    how = await late
    gate.set()
    await asyncio.gather(*held)
    await in_tool_thread(lambda: None)

    assert how is NotStarted
    assert not ran.is_set()


async def _how_it_ended(ran: threading.Event) -> type[BaseException] | None:
    try:
        await in_tool_thread(ran.set)
    except asyncio.CancelledError as error:
        return type(error)
    return None


async def test_a_cancellation_does_not_wait_for_work_that_has_begun() -> None:
    """A tool that hangs would hold up the end of the run."""
    begun, gate, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        gate.wait()
        ended.set()

    task = asyncio.ensure_future(in_tool_thread(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    gate.set()

    assert not isinstance(cancelled.value, NotStarted)
    assert await asyncio.to_thread(ended.wait, 5)


HANGING = """
import asyncio, threading
from daruma.tools.threads import in_tool_thread

async def main():
    begun = threading.Event()
    task = asyncio.ensure_future(in_tool_thread(lambda: (begun.set(), threading.Event().wait())))
    await asyncio.to_thread(begun.wait)
    task.cancel()

asyncio.run(main())
print("ended")
"""


def test_a_hanging_tool_does_not_hang_the_exit() -> None:
    """The interpreter waits for the standard library's pools."""
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=30, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


async def test_tools_that_hang_for_ever_keep_no_other_from_its_turn() -> None:
    """Once they were given up: their threads can not be stopped, but others take their places."""
    gate = threading.Event()
    ends = [await given_up(gate) for _ in range(2 * MOST_TOOL_THREADS)]

    ran = await asyncio.wait_for(in_tool_thread(lambda: "ran"), 30)
    gate.set()

    assert NotStarted not in ends
    assert ran == "ran"


async def given_up(gate: threading.Event) -> type[BaseException] | None:
    """Begin work that hangs, and leave it."""
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang() -> None:
        loop.call_soon_threadsafe(begun.set)
        gate.wait()

    task = asyncio.ensure_future(in_tool_thread(hang))
    await asyncio.wait_for(begun.wait(), 30)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as error:
        return type(error)
    return None


FORKING = """
import asyncio, os
from daruma.tools.threads import to_thread
from daruma.tools.threads import in_tool_thread

async def both():
    return await in_tool_thread(os.getpid), await to_thread(os.getpid)

asyncio.run(both())
child = os.fork()
if not child:
    ran = asyncio.run(asyncio.wait_for(both(), 10))
    os._exit(0 if ran == (os.getpid(), os.getpid()) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_has_threads_of_its_own() -> None:
    """Those of its parent stay behind, also the idle ones that it would count on."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("0\n", "")
