"""Waiting for something so long and no longer."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Value = TypeVar("Value")


async def within(seconds: float, answer: Awaitable[Value]) -> Value:
    """Wait for an answer so long. Raises ``TimeoutError``, which says how long that was."""
    seconds = max(seconds, 0.0)
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"no answer within {seconds:.3g} s") from error
        raise
