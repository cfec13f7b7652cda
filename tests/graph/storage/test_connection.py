"""A connection waits so long for an answer, and not for ever (DU-04)."""

import asyncio

import pytest
from psycopg.errors import ConnectionTimeout
from tests.fault_proxy import fault_proxy, once, passing

from daruma.graph.storage.connection import LimitedConnection, answers_within


async def connected(url: str) -> LimitedConnection:
    return await LimitedConnection.connect(url, autocommit=True)


async def test_a_server_that_has_fallen_silent_is_a_lost_one(postgres_server: str) -> None:
    """The connection is closed with it: an answer that comes late would be to another question."""
    with fault_proxy(postgres_server) as proxy:
        connection = await connected(proxy.url)
        proxy.count_from_here(once(0, "swallow"))

        with answers_within(0.2), pytest.raises(ConnectionTimeout, match=r"within 0\.2 s"):
            await connection.execute("SELECT 1")

        assert connection.closed


async def test_a_slow_answer_is_an_answer(postgres_server: str) -> None:
    """Each message is waited for on its own, and what was given is over with its block."""
    async with await connected(postgres_server) as connection:
        with answers_within(0.1), pytest.raises(ConnectionTimeout):
            await connection.execute("SELECT pg_sleep(5)")
    async with await connected(postgres_server) as connection:
        await connection.execute("SELECT pg_sleep(0.2)")


async def test_a_cancelled_wait_ends_at_once(postgres_server: str) -> None:
    """psycopg asks the server to cancel, and waits 5 s and more for one that does not answer."""
    with fault_proxy(postgres_server) as proxy:
        connection = await connected(proxy.url)
        proxy.count_from_here(once(0, "swallow"))
        waiting = asyncio.create_task(connection.execute("SELECT 1"))
        await asyncio.to_thread(proxy.faulted.wait)

        waiting.cancel()
        async with asyncio.timeout(2):
            with pytest.raises(asyncio.CancelledError):
                await waiting

        assert connection.closed
        assert proxy.fate is not passing
