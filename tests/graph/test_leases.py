"""One thread is run by one run at a time; the rest are told (DU-03)."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from daruma.graph.storage.ledgers import Leases, leases_of
from daruma.graph.storage.postgres import open_postgres
from daruma.state.errors import ThreadBusy


@pytest.fixture(params=["process", "postgres"])
def leases(request: pytest.FixtureRequest) -> Iterator[Leases]:
    """Those of a checkpointer that has no place for them, and those in a database."""
    if request.param == "process":
        yield leases_of(InMemorySaver())
        return
    with open_postgres(request.getfixturevalue("postgres_url")) as pg:
        yield leases_of(pg.checkpointer)


def test_a_thread_that_is_held_can_not_be_taken(leases: Leases) -> None:
    """The error says what to do; other threads are free."""
    hold = leases.take("t")

    with pytest.raises(ThreadBusy, match=r"^thread 't' is being run .*wait until"):
        leases.take("t")
    leases.give_back(leases.take("other"))
    leases.give_back(hold)

    leases.give_back(leases.take("t"))


def test_of_many_at_once_one_takes_it(leases: Leases) -> None:
    """From twenty threads."""

    def take(_: int) -> bool:
        try:
            leases.take("t")
        except ThreadBusy:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(take, range(20))) == 1


async def test_the_asynchronous_ways_are_the_same(leases: Leases) -> None:
    """From a loop that is not that of the database."""
    hold = await leases.atake("t")

    taken = await asyncio.gather(leases.atake("t"), leases.atake("t"), return_exceptions=True)
    assert [type(each) for each in taken] == [ThreadBusy] * 2
    await leases.agive_back(hold)

    await leases.agive_back(await leases.atake("t"))


def test_giving_back_what_another_has_by_now_changes_nothing(leases: Leases) -> None:
    """It is the run that holds it, not whoever comes."""
    first = leases.take("t")
    leases.give_back(first)
    leases.take("t")

    leases.give_back(first)

    with pytest.raises(ThreadBusy):
        leases.take("t")


def test_all_graphs_over_one_checkpointer_know_who_runs() -> None:
    """Also through a copy of it."""
    saver = InMemorySaver()

    assert leases_of(saver) is leases_of(saver)
