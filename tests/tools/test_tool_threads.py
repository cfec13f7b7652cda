"""Blocking tools have threads of their own, that nothing waits for."""

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from daruma.tools.tool_threads import LIMIT, NotStarted, ToolThreads, in_tool_thread

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


async def test_a_stop_iteration_does_not_leave_its_caller_waiting() -> None:
    """No future of asyncio takes one."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(in_tool_thread(fall, StopIteration("end")), 5)


async def test_blocking_tools_hold_up_nothing_else() -> None:
    """TL-21: asyncio's own pool stays free, however many tools hang."""
    gate = threading.Event()
    held = [asyncio.ensure_future(in_tool_thread(gate.wait)) for _ in range(LIMIT)]

    free = await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5)
    gate.set()

    assert free == "free"
    assert await asyncio.gather(*held) == [True] * LIMIT


def test_no_more_threads_are_started_than_needed() -> None:
    """One that is idle takes the next piece of work; more than the limit wait."""
    threads = ToolThreads(limit=2)
    both = threading.Barrier(3)
    waiting = [threads.submit(both.wait) for _ in range(2)]
    late = threads.submit(lambda: threading.current_thread().name)

    both.wait(5)

    assert late.result(5) in {"daruma-tool-1", "daruma-tool-2"}
    assert {future.result(5) for future in waiting} <= {0, 1, 2}
    names = {threads.submit(lambda: threading.current_thread().name).result(5) for _ in range(20)}
    assert names <= {"daruma-tool-1", "daruma-tool-2"}


async def test_cancelled_work_that_had_not_begun_never_runs() -> None:
    """And this is said apart from work that was given up half way."""
    gate, ran = threading.Event(), threading.Event()
    held = [asyncio.ensure_future(in_tool_thread(gate.wait)) for _ in range(LIMIT)]
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
from daruma.tools.tool_threads import in_tool_thread

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
