"""One async function serves every kind of caller; cancelling crosses in both directions."""

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from daruma.graph.sync import LeftBehind, background_loop, on, run

CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody")


async def test_a_waiting_thread_gets_the_result_even_inside_a_running_loop() -> None:
    """A notebook's loop is running while its cells call synchronous functions."""

    async def answer() -> int:
        assert asyncio.get_running_loop() is background_loop()
        return 42

    assert run(answer()) == 42


def test_the_coroutine_sees_the_callers_context() -> None:
    """Callbacks, configuration and tracing of LangGraph travel in context variables."""

    async def caller() -> str:
        return CALLER.get()

    CALLER.set("me")

    assert run(caller()) == "me"


def test_a_wait_that_could_never_end_is_an_error() -> None:
    """Waiting on the background loop's own thread is refused, and leaves no coroutine behind."""

    async def inner() -> None: ...

    async def outer() -> None:
        run(inner())

    with pytest.raises(RuntimeError, match="own event loop"):
        run(outer())


def test_a_loop_that_is_closed_is_told_of_with_what_to_do() -> None:
    """As of a graph made in one ``asyncio.run`` and used in another; nothing is left unawaited."""

    async def nothing() -> None: ...

    closed = asyncio.new_event_loop()
    closed.close()

    with pytest.raises(LeftBehind, match=r"event loop.*has ended.*one asyncio\.run"):
        run(nothing(), loop=closed)
    with pytest.raises(LeftBehind, match=r"event loop.*has ended.*one asyncio\.run"):
        asyncio.run(on(closed, nothing()))


def test_errors_keep_their_type_up_to_system_exit_and_the_loop_lives_on() -> None:
    """What a coroutine raises belongs to its caller alone."""

    async def fail(error: BaseException) -> None:
        raise error

    for error in (ValueError(), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            run(fail(error))


def test_an_interrupted_wait_cancels_and_waits_for_the_clean_up() -> None:
    """Ctrl-C must not leave a command or a connection behind."""
    steps: list[str] = []

    async def work() -> None:
        try:
            signal.pthread_kill(main, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    main = threading.main_thread().ident or 0
    with pytest.raises(KeyboardInterrupt):
        run(work())

    assert steps == ["cleaned up"]


async def test_a_cancelled_caller_on_another_loop_cancels_and_waits_for_the_clean_up() -> None:
    """A node that is cancelled while it awaits storage leaves nothing half done."""
    started, steps = asyncio.Event(), list[str]()
    here = asyncio.get_running_loop()

    async def work() -> None:
        try:
            here.call_soon_threadsafe(started.set)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    caller = asyncio.create_task(on(background_loop(), work()))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    assert steps == ["cleaned up"]


async def test_a_cancelled_caller_is_cancelled_even_if_the_coroutine_has_just_ended() -> None:
    """The end and the cancelling may cross on their way; the cancelling is not lost."""
    started, here = asyncio.Event(), asyncio.get_running_loop()

    async def end_anyway() -> str:
        with suppress(asyncio.CancelledError):
            here.call_soon_threadsafe(started.set)
            await asyncio.Event().wait()
        return "done"

    caller = asyncio.create_task(on(background_loop(), end_anyway()))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_a_cancelled_coroutine_cancels_its_caller_on_another_loop() -> None:
    """The other direction: who cancels at home is heard by who waits."""

    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await on(background_loop(), give_up())


async def test_on_the_right_loop_nothing_is_crossed() -> None:
    """Awaiting at home stays in the same task, so that timeouts and groups work as ever."""

    async def task() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    assert await on(asyncio.get_running_loop(), task()) is asyncio.current_task()


def test_many_threads_share_one_loop_and_do_not_wait_for_each_other() -> None:
    """Eight callers meet inside their coroutines, which only works when all run at once."""
    meeting = run(_barrier(8))

    async def meet() -> int:
        await asyncio.wait_for(meeting.wait(), 30)
        return threading.get_ident()

    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _: run(meet()), range(8)))

    assert len(set(seen)) == 1


async def _barrier(parties: int) -> asyncio.Barrier:
    return asyncio.Barrier(parties)


@pytest.mark.parametrize(
    "leave",
    [
        "background_loop().call_soon_threadsafe(leave)",
        "threading.Thread(target=run, args=[work()], daemon=True).start()",
        "run(leave_a_task())",
    ],
)
def test_the_interpreter_ends_cleanly_with_work_under_way(leave: str) -> None:
    """No hang, no warning, and the work gets to clean up."""
    program = f"""
import asyncio, threading
from daruma.graph.sync import background_loop
from daruma.graph.sync import run

started, kept = threading.Event(), []

async def work():
    try:
        started.set()
        await asyncio.Event().wait()
    finally:
        print("cleaned up")

async def leave_a_task():
    kept.append(asyncio.create_task(work()))

def leave():  # the loop itself holds no task: one that nobody keeps is collected at any time
    kept.append(background_loop().create_task(work()))

threading.excepthook = lambda _: None
{leave}
started.wait()
"""
    command = [sys.executable, "-W", "error", "-c", program]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert (ended.stdout, ended.stderr) == ("cleaned up\n", "")
