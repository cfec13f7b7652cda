"""Waiting for something that only helps: no longer than it is worth, whatever becomes of it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class GaveUp(Exception):  # it is what happened
    """Raised where what was waited for was cancelled by somebody else."""


async def in_time(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Return what some work comes to. Raises what it raises, TimeoutError, :class:`GaveUp`.

    At the limit it is cancelled and left alone: what does not heed that is not waited for, as
    `asyncio.timeout` would.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(_heard)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    finally:
        task.cancel()
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} s")
    if task.cancelled():
        raise GaveUp("it was given up")
    return task.result()


def _heard(task: "asyncio.Task[Any]") -> None:
    """Take note of an error that comes too late, so that nobody is told that it was lost."""
    if not task.cancelled():
        task.exception()
