"""Blocking work off the event loop that is never left running behind a cancellation.

It has threads of its own. The event loop's are six on two cores, and whatever an application does
there, such as asking a model that blocks, would hold up every run; some of it for good.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import copy_context
from functools import cache, partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_AT_AN_END: Final = "cannot schedule new futures after"
"""What Python says once its threads take nothing more."""

LIMIT: Final = 32
"""Pieces of work that are done at once; they are short, and more wait their turn."""


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(LIMIT, thread_name_prefix="daruma-work")


os.register_at_fork(after_in_child=_threads.cache_clear)  # its threads stay behind


async def to_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what `asyncio.to_thread` does, on threads that only this package uses."""
    here = partial(copy_context().run, work, *args, **kwargs)
    loop = asyncio.get_running_loop()
    try:
        future = loop.run_in_executor(_threads(), here)
    except RuntimeError as error:
        if not str(error).startswith(_AT_AN_END):  # as where a process may have no thread more
            raise
        return here()  # the process ends: nobody is held up any more
    return await future


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Do the same, but a cancellation goes on only when the thread has ended.

    Whoever catches the cancellation may restore files; a late write must not land after that.
    """
    task = asyncio.ensure_future(to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await ended(task)
        raise


async def ended(future: "asyncio.Future[T]") -> None:
    """Wait for the end of `future`, through further cancellations; its outcome is dropped.

    Only for work that is known to end soon, from a caller that raises its `CancelledError` next.
    """
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            continue
    if not future.cancelled():
        future.exception()


@asynccontextmanager
async def entered_in_thread(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """Enter and leave a context that blocks; one that is still being entered is left as well."""
    entering = asyncio.ensure_future(to_thread(manager.__enter__))
    try:
        yield await asyncio.shield(entering)
    finally:
        await ended(entering)
        if not entering.cancelled() and not entering.exception():
            await in_thread(manager.__exit__, None, None, None)
