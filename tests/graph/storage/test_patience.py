"""What was lost is made again for so long, and then said in one line (DU-04)."""

import asyncio
from collections.abc import Callable
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import OperationalError, errors
from psycopg_pool import PoolTimeout
from tests.fault_proxy import fault_proxy, once

from daruma.graph.storage.database import Database, Patience, pause, seconds_of
from daruma.graph.storage.pool import Connection, Pool, answers_within
from daruma.graph.storage.postgres import aopen_postgres
from daruma.state.errors import StorageUnavailable
from daruma.state.settings.errors import SettingsError


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_pauses_grow_up_to_half_a_second_and_are_spread(tries: int, luck: float) -> None:
    """A thousand runs that were cut off together do not come back together."""
    assert 0 < pause(tries, luck) <= 0.5
    assert pause(tries, luck) <= pause(tries + 1, luck)
    assert pause(tries, 0) < pause(tries, 1)


@pytest.mark.parametrize(
    ("argument", "variable", "seconds"),
    [(None, "", 60.0), (None, "5", 5.0), (2.5, "5", 2.5), (0, "5", 0.0)],
)
def test_the_argument_goes_before_the_environment(
    argument: float | None, variable: str, seconds: float
) -> None:
    """And 60 s after both."""
    assert seconds_of(argument, variable) == seconds


@pytest.mark.parametrize(
    ("argument", "variable", "named"),
    [
        (-1, "", "outage_seconds"),
        (float("nan"), "", "outage_seconds"),
        (float("inf"), "", "outage_seconds"),
        (None, "soon", "DARUMA_POSTGRES_OUTAGE_SECONDS"),
        (None, "-1", "DARUMA_POSTGRES_OUTAGE_SECONDS"),
    ],
)
def test_a_time_that_is_none_is_one_clear_line(
    argument: float | None, variable: str, named: str
) -> None:
    """It names where it came from, and what would do."""
    with pytest.raises(SettingsError, match=f"^{named} must be a number of seconds.*such as 60"):
        seconds_of(argument, variable)


async def test_opening_refuses_such_a_time(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given there, or by the environment."""
    monkeypatch.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "a while")

    with pytest.raises(SettingsError, match="a while"):
        async with aopen_postgres(postgres_url):
            pass
    async with aopen_postgres(postgres_url, outage_seconds=3) as pg:
        assert pg.checkpointer.database.patience.seconds == 3


async def database(url: str, seconds: float, use: Callable[[Database], object]) -> object:
    async with aopen_postgres(url, outage_seconds=seconds) as pg:
        return await use(pg.checkpointer.database)  # type: ignore[misc]


class Failing:
    """An operation that fails with its errors in turn, and then is done."""

    def __init__(self, *failing: Exception) -> None:
        self.failing = list(failing)
        self.tries = 0

    async def __call__(self) -> str:
        self.tries += 1
        if self.failing:
            raise self.failing.pop(0)
        return "done"


async def test_what_was_lost_is_made_again(postgres_url: str) -> None:
    """Whatever the loss was."""
    lost = [errors.AdminShutdown(), errors.DeadlockDetected(), PoolTimeout(), OperationalError("x")]
    operation = Failing(*lost)

    assert await database(postgres_url, 60, lambda own: own.patiently(operation)) == "done"
    assert operation.tries == 5


@pytest.mark.parametrize("error", [errors.UndefinedTable("no table"), KeyError("a bug")])
async def test_what_is_no_loss_is_raised_as_it_is_at_once(
    postgres_url: str, error: Exception
) -> None:
    """Another try would only be later."""
    operation = Failing(error)

    with pytest.raises(type(error)) as raised:
        await database(postgres_url, 60, lambda own: own.patiently(operation))

    assert raised.value is error
    assert operation.tries == 1


async def test_a_full_disk_is_said_at_once_with_what_to_do(postgres_url: str) -> None:
    """It does not go away by waiting; said by the server itself."""
    tries = []

    async def fill(connection: Connection) -> None:
        tries.append(connection)
        await connection.execute(
            "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )

    with pytest.raises(StorageUnavailable, match=r"no room left .*make room there") as raised:
        await database(postgres_url, 60, lambda own: own.transact(fill))

    assert raised.value.code == "storage_unavailable"
    assert "\n" not in str(raised.value)
    assert len(tries) == 1


async def test_a_database_that_stays_lost_is_said_in_one_line(postgres_url: str) -> None:
    """Where, why, for how long, that nothing is lost, and how to go on; without a password."""

    async def lose(own: Database) -> None:
        await own.patiently(Failing(*[errors.AdminShutdown("terminating\nit")] * 1000))

    began = monotonic()
    with pytest.raises(StorageUnavailable) as raised:
        await database(postgres_url, 0.3, lose)

    said = str(raised.value)
    assert monotonic() - began < 5
    assert "\n" not in said
    for part in ("Postgres at postgresql://postgres@", "(terminating)", "nothing that was stored"):
        assert part in said
    assert "`daruma resume THREAD`" in said


async def test_a_busy_pool_is_no_lost_database(postgres_url: str) -> None:
    """While others are answered, who waits for a connection waits on."""
    others, crowded = Failing(), Failing(*[PoolTimeout("all are in use")] * 4)

    async with aopen_postgres(postgres_url, outage_seconds=0) as pg:
        own = pg.checkpointer.database

        async def in_a_crowd() -> str:
            await own.patiently(others)
            return await crowded()

        with pytest.raises(StorageUnavailable):
            await own.patiently(Failing(PoolTimeout("nobody is answered")))
        assert await own.patiently(in_a_crowd) == "done"


async def test_a_busy_pool_is_waited_for_longer_than_a_lost_database(postgres_url: str) -> None:
    """For many minutes, and then it is said for what it is; a loss is not."""

    async def in_a_crowd(patience: Patience, pool: Pool) -> str:
        crowded = Failing(*[PoolTimeout("all are in use")] * 20)

        async def overtaken() -> str:
            await patience.over(Failing(), pool)
            return await crowded()

        return await patience.over(overtaken, pool)

    async with aopen_postgres(postgres_url) as pg:
        with pytest.raises(StorageUnavailable, match="too busy with other runs") as raised:
            await in_a_crowd(Patience(seconds=3600, busy_seconds=0.2), pg.pool)

    assert Patience().busy_seconds > 5 * Patience().seconds
    assert "\n" not in str(raised.value)


async def test_a_cancellation_comes_through_an_outage(postgres_url: str) -> None:
    """Who presses Ctrl-C does not wait for a database."""
    async with aopen_postgres(postgres_url) as pg:
        begun = asyncio.Event()

        async def lost() -> None:
            begun.set()
            raise errors.AdminShutdown

        waiting = asyncio.create_task(pg.checkpointer.database.patiently(lost))
        await begun.wait()
        waiting.cancel()
        await asyncio.wait([waiting], timeout=5)

        assert waiting.cancelled()


async def test_a_connection_that_is_silent_costs_its_limit_once(postgres_url: str) -> None:
    """The rest of the pool is renewed with it; DU-04."""
    with fault_proxy(postgres_url) as proxy, answers_within(0.3):
        async with aopen_postgres(proxy.url) as pg:
            await pg.athreads()
            proxy.count_from_here(once(0, "swallow"))

            async with asyncio.timeout(5):
                assert await pg.athreads() == []

        assert proxy.faults == 1
