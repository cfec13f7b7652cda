"""Blocking tools have threads of their own, that nothing waits for."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextvars import ContextVar

import pytest

from daruma.tools.threads import MOST_TOOL_THREADS, NotStarted, in_tool_thread

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
