"""Waiting for something so long and no longer."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Value = TypeVar("Value")


async def within(seconds: float, answer: Awaitable[Value]) -> Value:
    """Wait for an answer so long. Raises ``TimeoutError``, which says how long that was.

    Whatever becomes of the answer, a cancellation while it was awaited is raised.
    """
    seconds = max(seconds, 0.0)
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"no answer within {seconds:.3g} s") from error
        raise
    finally:
        # Clients make errors of their own of it, and Python 3.11 forgets some (`wait_for`).
        if task and task.cancelling() > before:
            raise asyncio.CancelledError
