"""What tasks wrote is stored with the checkpoint that follows, or by itself: it is never lost."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from daruma.graph.storage.saving import PendingWrites
from daruma.state.errors import HoldLost

NEVER = 3600.0


class Stored:
    """A place that keeps rows, in the order in which it was given them."""

    def __init__(self, refuses: BaseException | None = None) -> None:
        self.rows: list[list[Any]] = []
        self.reached = asyncio.Event()
        self.open = asyncio.Event()
        self.open.set()
        self.refuses = refuses

    async def __call__(self, rows: Sequence[Any]) -> None:
        self.reached.set()
        await self.open.wait()
        if self.refuses:
            raise self.refuses
        self.rows.append(list(rows))


async def test_writes_wait_for_the_checkpoint_that_follows() -> None:
    """One transaction does for both."""
    apart, with_it = Stored(), Stored()
    pending = PendingWrites(apart, NEVER)

    await pending.add([(1,), (2,)])
    await pending.add([(3,)])
    await pending.stored_with(with_it)
    await pending.settled()

    assert (apart.rows, with_it.rows) == ([], [[(1,), (2,), (3,)]])


async def test_writes_that_nothing_follows_are_stored_by_themselves() -> None:
    """TL-02: a tool that is done stays done, however long the others of its superstep run."""
    apart = Stored()
    pending = PendingWrites(apart, 0)

    await pending.add([(1,)])
    async with asyncio.timeout(10):
        await apart.reached.wait()
    await pending.settled()

    assert apart.rows == [[(1,)]]


async def test_a_checkpoint_that_is_late_takes_the_writes_along_all_the_same() -> None:
    """In a busy process the time is over before those who are ready have had their turn."""
    apart, with_it = Stored(), Stored()
    pending = PendingWrites(apart, 0)

    await pending.add([(1,)])
    for _ in range(12):
        await asyncio.sleep(0)
    await pending.stored_with(with_it)

    assert (apart.rows, with_it.rows) == ([], [[(1,)]])


async def test_the_end_of_a_run_stores_what_is_left() -> None:
    """Nothing follows any more."""
    apart = Stored()
    pending = PendingWrites(apart, NEVER)

    await pending.add([(1,)])
    await pending.settled()
    await pending.settled()

    assert apart.rows == [[(1,)]]


async def test_a_checkpoint_waits_for_writes_that_are_on_their_way() -> None:
    """Stored before them, it would have lost them if they never arrived."""
    apart, with_it = Stored(), Stored()
    apart.open.clear()
    pending = PendingWrites(apart, 0)
    await pending.add([(1,)])
    async with asyncio.timeout(10):
        await apart.reached.wait()

    saving = asyncio.create_task(pending.stored_with(with_it))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    early = with_it.reached.is_set()
    apart.open.set()
    await saving

    assert (early, apart.rows, with_it.rows) == (False, [[(1,)]], [[]])


async def test_writes_that_could_not_be_stored_are_told_of_wherever_the_run_goes_next() -> None:
    """At the next write, the next checkpoint and the end; nothing is stored after them."""
    apart, with_it = Stored(HoldLost("t")), Stored()
    pending = PendingWrites(apart, NEVER)
    await pending.add([(1,)])

    for going_on in (pending.settled(), pending.add([(2,)]), pending.stored_with(with_it)):
        with pytest.raises(HoldLost):
            await going_on

    assert with_it.rows == []


async def test_a_checkpoint_that_was_cancelled_leaves_the_writes_pending() -> None:
    """Its transaction may not have taken place; the end of the run stores them."""
    apart, with_it = Stored(), Stored()
    with_it.open.clear()
    pending = PendingWrites(apart, NEVER)
    await pending.add([(1,)])
    saving = asyncio.create_task(pending.stored_with(with_it))
    async with asyncio.timeout(10):
        await with_it.reached.wait()

    saving.cancel()
    await asyncio.wait([saving])
    await pending.settled()

    assert apart.rows == [[(1,)]]


async def test_a_checkpoint_that_was_refused_takes_its_writes_along() -> None:
    """Its run is told so; at its end nobody waits for the same database once more."""
    apart = Stored()
    pending = PendingWrites(apart, NEVER)
    await pending.add([(1,)])

    with pytest.raises(HoldLost):
        await pending.stored_with(Stored(HoldLost("t")))
    await pending.settled()

    assert apart.rows == []


async def test_a_run_that_was_abandoned_leaves_no_complaint_behind() -> None:
    """Nobody comes for what kept its last writes from being stored."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))
    apart = Stored(HoldLost("t"))
    pending = PendingWrites(apart, 0)
    await pending.add([(1,)])
    async with asyncio.timeout(10):
        await apart.reached.wait()
    await asyncio.sleep(0)

    del apart, pending
    gc.collect()

    assert complaints == []
