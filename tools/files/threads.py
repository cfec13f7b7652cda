"""Blocking work off the event loop that is never left running behind a cancellation."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Like `asyncio.to_thread`, but a cancellation goes on only when the thread has ended.

    Whoever catches the cancellation may restore files; a late write must not land after that.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
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
    entering = asyncio.ensure_future(asyncio.to_thread(manager.__enter__))
    try:
        yield await asyncio.shield(entering)
    finally:
        await ended(entering)
        if not entering.cancelled() and not entering.exception():
            await in_thread(manager.__exit__, None, None, None)
