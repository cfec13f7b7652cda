"""Deletions that keep nobody waiting."""

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.studio.storage import ServerSaver

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
