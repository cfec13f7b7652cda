"""Threads for tools that block: their own, so that a slow tool holds up nothing but other tools."""

import asyncio
import os
from collections.abc import Callable
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
    try:
        return await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if future.cancel():
            raise NotStarted from None
        threads.leave(future)
        raise
