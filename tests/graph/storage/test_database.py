"""Leases, replies and checkpoints over connections that are lost (DU-03, DU-04)."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base import empty_checkpoint
from psycopg import OperationalError, errors
from psycopg_pool import PoolTimeout
from tests.fault_proxy import Fate, FaultProxy, fault_proxy, once, passing

from daruma.graph.storage import (
    Connection,
    Database,
    Hold,
    Pool,
    Postgres,
    aopen_postgres,
    open_postgres,
)
from daruma.graph.storage._database import Patience, answers_within, pause, seconds_of
from daruma.graph.storage._leases import PostgresLeases
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import StorageUnavailable, ThreadBusy
from daruma.state.settings import SettingsError


def messages_of(proxy: FaultProxy, act: Callable[[], object]) -> int:
    """How many messages a client sends for something."""
    proxy.count_from_here(passing)
    act()
    return proxy.messages


@pytest.mark.parametrize("fate", ["cut before", "cut after"])
def test_a_database_is_opened_whichever_message_is_cut(postgres_url: str, fate: Fate) -> None:
    """DU-04: also while its key is checked, and the first time that anybody opens it."""
    key = "ab" * 32

    def opened() -> None:
        with open_postgres(proxy.url, key=key):
            pass

    with fault_proxy(postgres_url) as proxy:
        number, faults = 0, 1
        while faults:  # the first one is cut off while it makes the tables, and so on
            proxy.count_from_here(once(number, fate))
            opened()
            number, faults = number + 1, proxy.faults

    assert number > 8


async def test_opening_rides_out_an_outage(postgres_url: str) -> None:
    """DU-04: as runs do; for no time, it is one clear line."""
    with fault_proxy(postgres_url) as proxy:
        proxy.refuse()
        with pytest.raises(StorageUnavailable, match="can not be used"):
            async with aopen_postgres(proxy.url, outage_seconds=0):
                pass
        proxy.faulted.clear()
        opening = asyncio.create_task(_version(proxy.url))
        await asyncio.to_thread(proxy.faulted.wait)
        proxy.mend()

        assert await opening


async def _version(url: str) -> str:
    async with aopen_postgres(url) as pg:
        return pg.server_version


def test_a_lease_whose_acknowledgement_was_lost_is_had(postgres_url: str) -> None:
    """Its retry does not take it for somebody else's; the other process does. Every message."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as own:
        leases = own.checkpointer.leases
        leases.give_back(leases.take("first"))
        count = messages_of(proxy, lambda: leases.give_back(leases.take("counted")))
        with open_postgres(postgres_url) as other:
            for number in range(count):
                proxy.count_from_here(once(number, "cut after"))
                hold = leases.take(f"t{number}")

                with pytest.raises(ThreadBusy):
                    other.checkpointer.leases.take(hold.thread_id)
                assert wrote(own, hold)
                leases.give_back(hold)
                after = other.checkpointer.leases.take(hold.thread_id)
                assert after.token > hold.token
                other.checkpointer.leases.give_back(after)


def wrote(pg: Postgres, hold: Hold) -> bool:
    """Whether who has a lease can write with it."""
    config: Any = {"configurable": {"thread_id": hold.thread_id, "checkpoint_ns": ""}}
    pg.checkpointer.held(hold).put(config, empty_checkpoint(), {}, {})
    return pg.checkpointer.get_tuple(config) is not None


@pytest.mark.long
def test_a_reply_whose_acknowledgement_was_lost_was_accepted(postgres_url: str) -> None:
    """It is told so when it is made again, and another reply still is not. Every message."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as own:
        replies = own.checkpointer.replies
        count = messages_of(proxy, lambda: run_on_loop(replies.accept("t", {"counted": 1})))
        with open_postgres(postgres_url) as other:
            for number in range(count):
                proxy.count_from_here(once(number, "cut after"))

                assert run_on_loop(replies.accept("t", {f"q{number}": 1}))
                assert not run_on_loop(other.checkpointer.replies.accept("t", {f"q{number}": 2}))
                assert run_on_loop(other.checkpointer.replies.find("t", [f"q{number}"])) == {
                    f"q{number}": 1
                }


@pytest.mark.long
def test_a_lease_can_not_be_given_back_to_a_lost_database_and_can_be_taken_again(
    postgres_url: str,
) -> None:
    """Giving it back is not waited for as long as an outage is; who had it takes it over."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as own:
        leases = own.checkpointer.leases
        first = leases.take("t")
        proxy.refuse()
        began = monotonic()

        leases.give_back(first)
        took = monotonic() - began
        proxy.mend()

        assert took < 10  # of the 60 s that an outage is ridden out

        assert leases.take("t").token > first.token


def test_a_run_that_could_not_say_that_it_is_over_is_known_to_be_in_its_process(
    postgres_url: str,
) -> None:
    """Through another pool too: a command that is typed again in one session."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url, outage_seconds=0) as own:
        first = own.checkpointer.leases.take("t")
        proxy.refuse()
        own.checkpointer.leases.give_back(first)

    with open_postgres(postgres_url) as other:
        assert other.checkpointer.leases.take("t").token > first.token


@pytest.mark.long
async def test_a_lease_that_ran_out_in_an_outage_is_still_good(postgres_url: str) -> None:
    """If nobody took it: its signs of life go on when the database is back."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url, outage_seconds=1) as own:
        leases = PostgresLeases(own.checkpointer.database, seconds=0.3)
        hold = await leases.atake("t")
        proxy.refuse()
        with pytest.raises(StorageUnavailable):
            own.threads()
        proxy.mend()

        assert await asyncio.to_thread(wrote, own, hold)
        with psycopg.connect(postgres_url, autocommit=True) as watcher:
            watcher.execute("LISTEN kept")
            watcher.execute("CREATE RULE kept AS ON UPDATE TO daruma_leases DO ALSO NOTIFY kept")
            assert list(watcher.notifies(timeout=10, stop_after=1)) != []
        await leases.agive_back(hold)


def test_a_server_that_may_only_be_read_is_left_for_the_one_after_it(postgres_url: str) -> None:
    """A failover: connections to the old one seem to be good, and are of no use (25006)."""
    with open_postgres(postgres_url) as pg:
        database, seen = pg.checkpointer.database, []

        async def write(connection: Any) -> None:
            seen.append(connection)
            if len(seen) == 1:
                await connection.execute("SET TRANSACTION READ ONLY")
            await connection.execute("DELETE FROM daruma_replies")

        run_on_loop(database.transact(write))

        assert [connection.closed for connection in seen] == [True, False]


def test_what_a_connection_that_was_cut_off_has_locked_is_free_soon(postgres_url: str) -> None:
    """Its retry waits for the lock; the server would hear of a dead network after hours."""

    async def limit(connection: Any) -> str:
        row = await (
            await connection.execute("SHOW idle_in_transaction_session_timeout")
        ).fetchone()
        return str(row["idle_in_transaction_session_timeout"])

    with open_postgres(postgres_url) as pg:
        assert run_on_loop(pg.checkpointer.database.transact(limit)) == "10s"


# --- What was lost is made again for so long, and then said in one line (DU-04).


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


@pytest.mark.long
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


@pytest.mark.long
async def test_a_connection_that_is_silent_costs_its_limit_once(postgres_url: str) -> None:
    """The rest of the pool is renewed with it; DU-04."""
    with fault_proxy(postgres_url) as proxy, answers_within(0.3):
        async with aopen_postgres(proxy.url) as pg:
            await pg.athreads()
            proxy.count_from_here(once(0, "swallow"))

            async with asyncio.timeout(5):
                assert await pg.athreads() == []

        assert proxy.faults == 1
