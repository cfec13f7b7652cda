"""The events of threads in Postgres: kept in order, sealed where all is, forgotten after a time."""

import pytest

from daruma.graph.storage import EVENTS_AT_ONCE, aopen_postgres
from daruma.state.errors import DamagedState

KEY = bytes(range(32))
STOP = {"type": "run_stopped"}


async def test_events_come_back_in_their_order(postgres_url: str) -> None:
    """Of one thread, after the one that is named, so many at once."""
    async with aopen_postgres(postgres_url) as pg:
        log = pg.checkpointer.events
        await log.write(
            "t", "r", [{"type": "e", "n": number} for number in range(EVENTS_AT_ONCE + 1)]
        )
        await log.write("u", "r", [{"type": "e", "n": -1}])

        heard = await log.read("t", 0)
        rest = await log.read("t", heard[-1].id)

    assert [each.event["n"] for each in [*heard, *rest]] == [*range(EVENTS_AT_ONCE + 1)]
    assert len(rest) == 1


async def test_the_newest_run_is_what_came_after_the_stop_before(postgres_url: str) -> None:
    """Whether it has ended or not."""
    async with aopen_postgres(postgres_url) as pg:
        log = pg.checkpointer.events
        none = await log.of_newest_run("t")
        await log.write("t", "r1", [{"type": "one"}, STOP, {"type": "two"}])
        going = await log.of_newest_run("t")
        await log.write("t", "r2", [STOP])
        ended = await log.of_newest_run("t")

    assert none == []
    assert [each.type for each in going] == ["two"]
    assert [each.type for each in ended] == ["two", "run_stopped"]


async def test_a_long_run_is_told_whole(postgres_url: str) -> None:
    """However many events it had."""
    async with aopen_postgres(postgres_url) as pg:
        log = pg.checkpointer.events
        await log.write(
            "t", "r", [{"type": "e", "n": number} for number in range(2 * EVENTS_AT_ONCE + 1)]
        )
        heard = await log.of_newest_run("t")

    assert [each.event["n"] for each in heard] == [*range(2 * EVENTS_AT_ONCE + 1)]


async def test_events_are_sealed_in_their_place(postgres_url: str) -> None:
    """Nobody else reads them, and one that was moved is refused."""
    async with aopen_postgres(postgres_url, key=KEY) as pg:
        log = pg.checkpointer.events
        await log.write("t", "r", [{"type": "e", "output": "secret"}])
        async with pg.pool.connection() as connection:
            found = await connection.execute("SELECT * FROM daruma_events")
            row = await found.fetchone()
            heard = await log.read("t", 0)
            await connection.execute("UPDATE daruma_events SET thread_id = 'u'")
        with pytest.raises(DamagedState):
            await log.read("u", 0)

    assert heard[0].event["output"] == "secret"
    assert row is not None
    assert b"secret" not in row["event"]


async def test_old_events_and_those_of_a_deleted_thread_go(postgres_url: str) -> None:
    """They are for watching."""
    async with aopen_postgres(postgres_url) as pg:
        log, saver = pg.checkpointer.events, pg.checkpointer
        for thread in ("t", "u"):
            await log.write(thread, "r", [STOP])
        await log.forget()
        await saver.adelete_thread("t")
        left = [len(await log.read(thread, 0)) for thread in ("t", "u")]
        await log.forget(seconds=0.0)

        assert left == [0, 1]
        assert await log.read("u", 0) == []
