"""Blocking work is never left running behind a cancellation."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from daruma.tools import threads
from daruma.tools.threads import in_thread


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
