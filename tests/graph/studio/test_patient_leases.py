"""Leases that are waited for."""

import asyncio

import pytest

from daruma.graph.storage.ledgers import ProcessLeases
from daruma.graph.studio.storage import PatientLeases
from daruma.state.errors import ThreadBusy


async def test_a_thread_that_is_given_back_is_had() -> None:
    """Who takes it is not refused at the end of the run before."""
    leases = ProcessLeases()
    hold = leases.take("t")
    waiting = asyncio.create_task(PatientLeases(leases, seconds=30).atake("t"))
    await asyncio.sleep(0)

    leases.give_back(hold)

    assert (await waiting).thread_id == "t"


async def test_a_thread_that_is_kept_is_not_had() -> None:
    """After that time it is busy, as it is for everybody."""
    leases = ProcessLeases()
    leases.take("t")

    with pytest.raises(ThreadBusy):
        await PatientLeases(leases, seconds=0).atake("t")
