"""Threads for tools that block: their own, so that a slow tool holds up nothing but other tools."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from typing import Final, ParamSpec, TypeVar

from daruma.tools.daemon_threads import DaemonThreads

P = ParamSpec("P")
T = TypeVar("T")

LIMIT: Final = 64
"""Blocking tools that run at once; more wait their turn. Those that compute share one core."""

LEFT_LIMIT: Final = 512
"""Tools that hang and were given up, beside those; from then on they keep others waiting."""


class NotStarted(asyncio.CancelledError):
    """Raised in place of a plain cancellation when the work had not begun, and never will."""


@cache
def _threads() -> DaemonThreads:
    return DaemonThreads("daruma-tool", LIMIT, LEFT_LIMIT)


os.register_at_fork(after_in_child=_threads.cache_clear)  # its threads stay behind


async def in_tool_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run blocking work on one of the tools' threads, with a copy of the context variables.

    A cancellation goes on at once; work that has begun is left to itself. Raises
    :class:`NotStarted`, which is a cancellation, if it had not.
    """
    threads = _threads()
    future = threads.submit(partial(copy_context().run, work, *args, **kwargs))
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
