"""Event loops that turn in the background, alive from their first use to the exit.

One serves synchronous callers. What must not hold up a run has a loop of its own, by another name.
"""

import asyncio
import atexit
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Final

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
