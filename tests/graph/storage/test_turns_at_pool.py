"""Turns at the pool: as many at once as it has connections, in order, and none is lost."""

import asyncio
from contextlib import AsyncExitStack, suppress

import pytest
from psycopg_pool import PoolTimeout

from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.storage.turns_at_pool import TurnsAtPool

LONG = 60.0
SHORT = 0.001


async def rounds() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Crowd:
    """Takes turns, and says who has one."""

    def __init__(self, turns: TurnsAtPool) -> None:
        self.turns, self.seen = turns, list[int]()
        self.at_once = self.most = 0
        self.leave = asyncio.Event()

    async def come(self, number: int) -> None:
        await self.turns.begin()
        try:
            self.seen.append(number)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            await self.leave.wait()
        finally:
            self.at_once -= 1
            self.turns.end()


async def test_no_more_than_so_many_have_a_turn_and_all_have_one_in_order() -> None:
    """Who comes first is not overtaken, however many come."""
    crowd = Crowd(TurnsAtPool(3, LONG))
    everybody = asyncio.gather(*(crowd.come(number) for number in range(10)))
    await rounds()
    first = list(crowd.seen)
    crowd.leave.set()
    await everybody

    assert first == [0, 1, 2]
    assert crowd.seen == [*range(10)]
    assert crowd.most == 3


async def test_who_waits_for_too_long_is_told_as_by_the_pool() -> None:
    """Its retry looks whether the database is lost; nobody else's turn is lost with it."""
    turns = TurnsAtPool(1, SHORT)
    await turns.begin()
    with pytest.raises(PoolTimeout, match=r"no connection was free within 0\.001 s"):
        await turns.begin()
    turns.end()
    await turns.begin()
    turns.end()


async def test_who_is_cancelled_takes_no_turn_along() -> None:
    """Neither one that waits, nor one whose turn came in the same moment."""
    crowd = Crowd(TurnsAtPool(1, LONG))
    everybody = [asyncio.create_task(crowd.come(number)) for number in range(4)]
    await rounds()
    everybody[2].cancel()
    await rounds()
    everybody[0].cancel()
    await asyncio.sleep(0)
    everybody[1].cancel()
    crowd.leave.set()
    for each in everybody:
        with suppress(asyncio.CancelledError):
            await each

    assert crowd.seen[-1] == 3
    assert crowd.at_once == 0


async def test_a_crowd_of_statements_asks_the_pool_in_turns(postgres_url: str) -> None:
    """More at once than it has connections: once these are made, none waits within it."""
    async with aopen_postgres(postgres_url) as postgres:
        database = postgres.checkpointer.database
        pool, asked = database.pool, "SELECT %(n)s AS n"
        async with AsyncExitStack() as all_taken:
            for _ in range(pool.max_size):
                await all_taken.enter_async_context(pool.connection())
        before = pool.get_stats().get("requests_queued", 0)
        crowd = (database.statement(asked, {"n": n}) for n in range(100))
        rows = await asyncio.gather(*crowd)

        assert [row[0]["n"] for row in rows] == [*range(100)]
        assert pool.get_stats().get("requests_queued", 0) == before
