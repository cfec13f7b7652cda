"""One saver for every thread and loop, that survives what databases do (DU-04, DU-05)."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, StateGraph
from psycopg.rows import dict_row

from daruma.graph.storage import Postgres, PostgresSaver, aopen_postgres, open_postgres
from daruma.graph.storage._checkpoints import off_loop
from daruma.graph.sync import on, run
from daruma.state.errors import DamagedState

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def extend(kept: list[str], writes: list[list[str]]) -> list[str]:
    return [*kept, *(word for write in writes for word in write)]


class State(TypedDict):
    words: Annotated[list[str], DeltaChannel(extend)]


def speak(state: State) -> dict[str, Any]:
    return {"words": [f"word {len(state['words'])}"]}


def talker(postgres: Postgres) -> Any:
    builder = StateGraph(State).add_node(speak).add_edge(START, "speak")
    return builder.compile(postgres.checkpointer)


async def use_synchronously(saver: PostgresSaver) -> list[Any]:
    put = saver.put(CONFIG, empty_checkpoint(), {"step": 1}, {})
    saver.put_writes(put, [("words", ["x"])], "task")
    got = saver.get_tuple(CONFIG)
    listed = [each.config for each in saver.list(CONFIG, filter={"step": 1}, limit=5)]
    history = saver.get_delta_channel_history(config=put, channels=["words"])
    saver.prune(["other"], strategy="delete")
    saver.delete_thread("t")
    assert got
    return [put == got.config, got.pending_writes, listed == [put], history, saver.get(CONFIG)]


async def use_asynchronously(saver: PostgresSaver) -> list[Any]:
    put = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
    await saver.aput_writes(put, [("words", ["x"])], "task")
    got = await saver.aget_tuple(CONFIG)
    listed = [each.config async for each in saver.alist(CONFIG, filter={"step": 1}, limit=5)]
    history = await saver.aget_delta_channel_history(config=put, channels=["words"])
    await saver.aprune(["other"], strategy="delete")
    await saver.adelete_thread("t")
    assert got
    again = await saver.aget(CONFIG)
    return [put == got.config, got.pending_writes, listed == [put], history, again]


USED = [True, [("task", "words", ["x"])], True, {"words": {"writes": []}}, None]


@pytest.mark.parametrize("use", [use_synchronously, use_asynchronously])
async def test_every_method_works_from_a_loop_that_is_not_its_own(
    postgres_url: str, use: Callable[[PostgresSaver], Awaitable[list[Any]]]
) -> None:
    """Opened synchronously, the pool lives on the background loop; this is another one."""
    with open_postgres(postgres_url) as postgres:
        assert await use(postgres.checkpointer) == USED


async def test_every_method_works_on_its_own_loop_and_from_its_threads(postgres_url: str) -> None:
    """Opened asynchronously, the pool lives on the caller's loop."""
    async with aopen_postgres(postgres_url) as postgres:
        saver = postgres.checkpointer

        assert await use_asynchronously(saver) == USED
        assert await asyncio.to_thread(lambda: asyncio.run(use_synchronously(saver))) == USED
        assert await asyncio.to_thread(lambda: asyncio.run(use_asynchronously(saver))) == USED


async def read(saver: PostgresSaver) -> list[Any]:
    return [found for found in [await saver.aget_tuple(CONFIG)] if found]


async def read_all(saver: PostgresSaver) -> list[Any]:
    return [each async for each in saver.alist(CONFIG)]


@pytest.mark.parametrize("reading", [read, read_all])
async def test_more_callers_than_connections_take_turns(
    postgres_url: str, reading: Callable[[PostgresSaver], Awaitable[list[Any]]]
) -> None:
    """Who waits for a connection waits on the pool's loop: another loop's waiters never wake."""
    with open_postgres(postgres_url) as postgres:
        callers = [reading(postgres.checkpointer) for _ in range(60)]
        async with asyncio.timeout(30):
            assert await asyncio.gather(*callers) == [[]] * 60


async def test_a_synchronous_call_on_its_own_loop_is_an_error(postgres_url: str) -> None:
    """LangGraph's saver waits for itself for ever here, in ``put`` and ``put_writes``."""
    async with aopen_postgres(postgres_url) as postgres:
        for call in (
            lambda: postgres.checkpointer.get_tuple(CONFIG),
            lambda: postgres.checkpointer.put(CONFIG, empty_checkpoint(), {}, {}),
            lambda: list(postgres.checkpointer.list(CONFIG)),
        ):
            with pytest.raises(RuntimeError, match="own event loop"):
                call()


async def test_a_thread_can_be_driven_by_all_kinds_of_callers(postgres_url: str) -> None:
    """Sync, async and sync inside a running loop continue one another's work."""
    with open_postgres(postgres_url) as postgres:
        machine = talker(postgres)
        machine.invoke({"words": ["hello"]}, CONFIG)
        await machine.ainvoke({}, CONFIG)
        ended = await asyncio.to_thread(machine.invoke, {}, CONFIG)

        assert ended["words"] == ["hello", "word 1", "word 2", "word 3"]
        assert len(list(machine.get_state_history(CONFIG))) == 9


async def test_operations_do_not_wait_for_one_another(postgres_url: str) -> None:
    """Langgraph#7259: one lock for each saver, though the pool has connections for all."""
    with open_postgres(postgres_url) as postgres:
        saver = postgres.checkpointer

        async def meet(barrier: asyncio.Barrier) -> None:
            async with saver.reading():
                await barrier.wait()

        async def meeting() -> None:
            barrier = asyncio.Barrier(3)
            async with asyncio.timeout(30):
                await asyncio.gather(*(meet(barrier) for _ in range(3)))

        await on(saver.loop, meeting())


def test_terminated_backends_cost_nothing(postgres_url: str) -> None:
    """DU-04: every connection is checked before it is used."""
    end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    here = " AND datname = current_database()"
    with open_postgres(postgres_url) as postgres, psycopg.connect(postgres_url) as other:
        machine = talker(postgres)
        for _ in range(3):
            machine.invoke({}, CONFIG)
            ended = other.execute(end_all + here).rowcount
            assert ended > 0

        assert len(machine.invoke({}, CONFIG)["words"]) == 4


@pytest.mark.long
def test_a_delta_channel_is_read_back_in_another_process(postgres_url: str) -> None:
    """The history of a channel is rebuilt from its writes, not from a process's memory."""
    with open_postgres(postgres_url) as postgres:
        for _ in range(3):
            talker(postgres).invoke({}, CONFIG)
    program = """
import json, sys
from daruma.graph.storage import open_postgres
with open_postgres(sys.argv[1]) as postgres:
    saver = postgres.checkpointer
    newest = saver.get_tuple({"configurable": {"thread_id": "t"}})
    found = saver.get_delta_channel_history(config=newest.config, channels=["words"])
    print(json.dumps([value for _, _, value in found["words"]["writes"]]))
"""
    command = [sys.executable, "-W", "error", "-c", program, postgres_url]

    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    assert json.loads(ended.stdout) == [["word 0"], ["word 1"], ["word 2"]]
    assert ended.stderr == ""


def test_a_damaged_checkpoint_is_named_and_the_one_before_it_can_be_resumed(
    postgres_url: str,
) -> None:
    """DU-05: refused with its id. LangGraph looks at a thread's newest checkpoint even when it is
    given another, so that the other has to become the newest first.
    """
    with open_postgres(postgres_url) as postgres:
        machine = talker(postgres)
        machine.invoke({}, CONFIG)
        before, damaged = _two_newest(postgres_url)
        with psycopg.connect(postgres_url) as other:
            other.execute(
                "INSERT INTO daruma_writes (thread_id, checkpoint_id, task_id, slot, channels,"
                " type, blob) VALUES ('t', %s, 'x', 0, '{words}', 'pickle', 'x')",
                [damaged],
            )

        with pytest.raises(DamagedState, match=f"checkpoint {damaged} of thread 't'"):
            machine.invoke({}, CONFIG)
        earlier: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_id": before}}
        machine.update_state(earlier, None, as_node="__copy__")
        resumed = machine.invoke(None, CONFIG)

    assert resumed["words"] == ["word 0"]


def _two_newest(url: str) -> list[str]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        rows = connection.execute(
            "SELECT checkpoint_id FROM daruma_checkpoints ORDER BY checkpoint_id DESC LIMIT 2"
        )
        return [row["checkpoint_id"] for row in rows][::-1]


def test_setup_is_offered_to_every_caller_as_well(empty_postgres_url: str) -> None:
    """LangGraph's documentation tells users to call it; on made tables it does nothing."""
    with open_postgres(empty_postgres_url) as postgres:
        run(postgres.checkpointer.setup())
        asyncio.run(postgres.checkpointer.setup())

        assert postgres.checkpointer.get_tuple(CONFIG) is None


async def test_versions_grow_and_tell_branches_apart(postgres_url: str) -> None:
    """LangGraph finds out by them what has changed; two branches may not share a value."""
    async with aopen_postgres(postgres_url) as pg:
        saver = pg.checkpointer
        first = saver.get_next_version(None, None)

        versions = [saver.get_next_version(first, None) for _ in range(100)]

    assert len(set(versions)) == 100
    assert all(first < each for each in versions)


@pytest.mark.parametrize(("size", "here"), [(0, True), (60_000, True), (1_000_000, False)])
async def test_only_much_is_unpacked_in_a_thread(size: int, here: bool) -> None:
    """A thread's waking costs more than reading a short history."""
    where = await off_loop(size, threading.get_ident)

    assert (where == threading.get_ident()) == here
