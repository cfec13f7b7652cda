"""What only helps is waited for as long as it is worth."""

import asyncio
import time

import pytest

from daruma.tools.evolution.lessons import GaveUp, in_time


async def after(event: asyncio.Event) -> int:
    await event.wait()
    return 7


async def test_what_comes_in_time_is_returned() -> None:
    """With no more waiting than it takes."""
    event = asyncio.Event()
    event.set()

    assert await in_time(after(event), 5.0) == 7


async def test_what_does_not_heed_a_cancellation_is_left_alone() -> None:
    """The limit holds for it as well."""
    event = asyncio.Event()

    async def stubborn() -> int:
        try:
            return await after(event)
        except asyncio.CancelledError:
            return await after(event)

    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        await in_time(stubborn(), 0.05)
    assert time.monotonic() - began < 5.0
    event.set()


async def test_who_cancels_it_elsewhere_does_not_cancel_the_waiter() -> None:
    """A store that cancels its own work has only failed."""

    async def cancelled() -> int:
        raise asyncio.CancelledError

    with pytest.raises(GaveUp):
        await in_time(cancelled(), 5.0)


async def test_a_cancellation_of_the_waiter_ends_the_work() -> None:
    """Who ends the run ends it."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(in_time(work(), 60.0))
    await begun.wait()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    await ended.wait()
