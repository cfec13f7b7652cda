"""What the server keeps threads and memories in: Daruma's own Postgres, with its fences."""

import asyncio

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from daruma.graph.storage import aopen_postgres
from daruma.graph.storage._ledgers import ProcessLeases
from daruma.graph.studio.entry import PatientLeases, ServerSaver
from daruma.state.errors import ThreadBusy

# --- Leases that are waited for.


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


# --- Deletions that keep nobody waiting.

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


async def test_a_deletion_does_not_wait_and_readers_wait_for_it(postgres_url: str) -> None:
    """The server would else take another thread from its list where two overlap."""
    async with aopen_postgres(postgres_url) as postgres:
        saver = ServerSaver.over(postgres.checkpointer)
        await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        before = await saver.aget_tuple(CONFIG)

        with pytest.raises(StopIteration):  # it has ended without being waited for once
            saver.adelete_thread("t").send(None)
        after = await saver.aget_tuple(CONFIG)
        await saver.all_deleted()

    assert before is not None
    assert after is None
