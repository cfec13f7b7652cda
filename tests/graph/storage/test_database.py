"""Leases, replies and checkpoints over connections that are lost (DU-03, DU-04)."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from tests.fault_proxy import FaultProxy, fault_proxy, once, passing

from daruma.graph.storage.leases import PostgresLeases
from daruma.graph.storage.ledgers import Hold
from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.state.errors import StorageUnavailable, ThreadBusy


def messages_of(proxy: FaultProxy, act: Callable[[], object]) -> int:
    """How many messages a client sends for something."""
    proxy.count_from_here(passing)
    act()
    return proxy.messages


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


def test_a_reply_whose_acknowledgement_was_lost_was_accepted(postgres_url: str) -> None:
    """It is told so when it is made again, and another reply still is not. Every message."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as own:
        replies = own.checkpointer.replies
        count = messages_of(proxy, lambda: replies.accept("t", {"counted": 1}))
        with open_postgres(postgres_url) as other:
            for number in range(count):
                proxy.count_from_here(once(number, "cut after"))

                assert replies.accept("t", {f"q{number}": 1})
                assert not other.checkpointer.replies.accept("t", {f"q{number}": 2})
                assert other.checkpointer.replies.accepted("t", [f"q{number}"]) == {f"q{number}": 1}


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

        database.transact_waiting(write)

        assert [connection.closed for connection in seen] == [True, False]


def test_what_a_connection_that_was_cut_off_has_locked_is_free_soon(postgres_url: str) -> None:
    """Its retry waits for the lock; the server would hear of a dead network after hours."""

    async def limit(connection: Any) -> str:
        row = await (
            await connection.execute("SHOW idle_in_transaction_session_timeout")
        ).fetchone()
        return str(row["idle_in_transaction_session_timeout"])

    with open_postgres(postgres_url) as pg:
        assert pg.checkpointer.database.transact_waiting(limit) == "10s"
