"""Waiting so long and no longer."""

import asyncio
from contextlib import suppress

import pytest

from daruma.graph.models.failover import within


async def value(error: Exception | None = None) -> str:
    if error:
        raise error
    return "hi"


async def test_what_comes_in_time_is_returned() -> None:
    """As it is."""
    assert await within(9, value()) == "hi"


@pytest.mark.parametrize("seconds", [0.01, 0, -1])
async def test_what_does_not_come_is_cancelled(seconds: float) -> None:
    """And the error says how long was waited; no time left is no time at all."""
    waiting = asyncio.ensure_future(asyncio.Event().wait())

    with pytest.raises(TimeoutError, match="no answer within 0"):
        await within(seconds, waiting)

    assert waiting.cancelled()


@pytest.mark.parametrize("error", [None, ConnectionError("broken off")])
async def test_a_cancellation_that_the_answer_swallows_is_not_lost(error: Exception | None) -> None:
    """Clients make errors of their own of it, and Python 3.11 forgets some altogether."""
    asked = asyncio.Event()

    async def deaf() -> str:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return await value(error)

    waiting = asyncio.create_task(within(9, deaf()))
    await asked.wait()
    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_anothers_timeout_stays_as_it_is() -> None:
    """It was not ours."""
    with pytest.raises(TimeoutError, match="theirs"):
        await within(9, value(TimeoutError("theirs")))
