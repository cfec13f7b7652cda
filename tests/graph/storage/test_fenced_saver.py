"""What a run has just read is not read again, and nothing that has changed since is given out."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base import CheckpointTuple, DeltaChannelHistory
from psycopg.rows import DictRow
from tests.scripted_runs import say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import PostgresSaver, aopen_postgres
from daruma.graph.storage._fenced_saver import LastRead
from daruma.graph.storage._history import Traced


class Counting(PostgresSaver):
    """Counts what it unpacks."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.reads = Counter[str]()

    def _loaded(self, value: DictRow) -> CheckpointTuple:
        self.reads["checkpoint"] += 1
        return super()._loaded(value)

    def _unpacked(self, traced: Traced) -> Mapping[str, DeltaChannelHistory]:
        self.reads["history"] += 1
        return super()._unpacked(traced)


@given(st.lists(st.sampled_from(["read a", "read b", "write"]), max_size=12))
def test_what_is_given_is_what_a_fresh_read_would_find(moves: list[str]) -> None:
    """Whatever is read and written between."""
    now, last = 0, LastRead[tuple[str, int]]()

    async def fresh(key: str) -> tuple[str, int]:
        return key, now

    async def walk() -> None:
        nonlocal now
        for move in moves:
            if move == "write":
                now += 1
                last.forget()
            else:
                assert await last.read(move, lambda key=move: fresh(key)) == (move, now)  # type: ignore[misc]

    asyncio.run(walk())


async def test_it_is_given_once_and_only_for_the_same() -> None:
    """So that a run does not keep its whole history twice."""
    last, reads = LastRead[int](), []

    async def read() -> int:
        reads.append(1)
        return len(reads)

    assert [await last.read(key, read) for key in ("a", "a", "a", "b", "a")] == [1, 1, 2, 3, 4]


async def test_what_was_read_while_something_was_written_is_not_kept() -> None:
    """It may be from before that."""
    last = LastRead[str]()

    async def overtaken() -> str:
        last.forget()
        return "old"

    async def fresh() -> str:
        return "new"

    assert await last.read("a", overtaken) == "old"
    assert await last.read("a", fresh) == "new"


async def test_a_run_that_goes_on_reads_its_thread_once(postgres_url: str) -> None:
    """At the door; LangGraph goes on from the same, and comes to the same."""
    model = ScriptedChatModel(script={"main": [say("one"), say("two"), say("three")]})
    config: Any = {"configurable": {"thread_id": "t"}}
    async with aopen_postgres(postgres_url) as postgres:
        saver = Counting(postgres.checkpointer.database, postgres.checkpointer.serde)
        graph: Any = build_graph(model, [], checkpointer=saver)
        await graph.ainvoke({"messages": [("user", "first")]}, config)
        saver.reads.clear()

        out = await graph.ainvoke({"messages": [("user", "second")]}, config)

        assert saver.reads == {"checkpoint": 1, "history": 1}
        said = [message.text for message in out["messages"]]
        assert said == ["first", "one", "second", "two"]
        assert (await graph.aget_state(config)).values["messages"] == out["messages"]
