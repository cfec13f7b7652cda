"""A checkpoint that is damaged is refused, and the one before it can be resumed (DU-05)."""

import re
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from tests.aged import store_as
from tests.crash.scenes import NEVER, graph_over
from tests.damages import (
    DAMAGES,
    KEY,
    TABLES,
    THREAD,
    at_the_end,
    deleted_one_by_one,
    essence,
    finished,
    killed_before,
    restored,
)

from daruma import Settings, build_graph
from daruma.graph.storage.postgres import open_postgres
from daruma.graph.storage.sealing import Typed
from daruma.state.errors import DamagedState


class Foreign(TypedDict):
    task: str
    plan: list[str]


@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_damaged_in_any_way_a_thread_ends_as_if_it_were_whole(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """It is refused by name, and taken up from the checkpoint that the refusal names.

    What was paid before is not paid again: the tasks of that checkpoint stay done.
    """
    folder = tmp_path / "paid"
    with open_postgres(postgres_url, key=key) as pg:
        whole = essence(finished(pg, folder))
        graph = graph_over(pg, "paid", folder, NEVER)
        killed_before(postgres_url, graph, "settle")
        newest = graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
        for name, statement in DAMAGES.items():
            with restored(postgres_url) as connection:
                assert connection.execute(statement.encode()).rowcount > 0, name

                with pytest.raises(DamagedState) as refused:
                    graph.get_state(THREAD)
                with pytest.raises(DamagedState, match="checkpoint"):
                    graph.invoke(None, THREAD)
                assert f"checkpoint {newest} of thread 't': " in str(refused.value), name
                again = at_the_end(graph, None, point_of(refused.value))

                assert essence(again) == whole, name
    assert folder.with_suffix(".ledger").read_text().split() == ["5", "7"]


def point_of(error: DamagedState) -> Any:
    """The config that an error says one can go on with."""
    found = re.search(r"the one before it, (\S+), is whole", str(error))
    assert found, error
    return {"configurable": {"thread_id": "t", "checkpoint_id": found[1]}}


@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_a_row_that_is_deleted_is_missed_or_was_not_needed(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """Any row of a thread: a state is refused, or it is the very same state."""
    with open_postgres(postgres_url, key=key) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        killed_before(postgres_url, graph, "settle")
        whole, missed = graph.get_state(THREAD), 0
        newest = whole.config["configurable"]["checkpoint_id"]
        with restored(postgres_url) as connection:
            for table, row in deleted_one_by_one(connection):
                try:
                    read = graph.get_state(THREAD)
                except DamagedState:
                    missed += 1
                else:
                    earlier = (table, row.get("checkpoint_id")) == ("checkpoints", newest)
                    assert earlier or read.values == whole.values, (table, row)
    assert missed > 20


def test_a_part_of_what_a_task_wrote_is_refused(postgres_url: str, tmp_path: Path) -> None:
    """Stock, the task counts as done, and what it wrote as all that there was.

    Each lost row of a killed run's last task shows; if it was the only one, the task runs again.
    """
    with open_postgres(postgres_url) as pg:
        whole = essence(finished(pg, tmp_path / "paid"))
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        killed_before(postgres_url, graph, "settle", after=True)
        newest = graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
        with restored(postgres_url) as connection:
            lost = [
                refusal(graph)
                for table, row in deleted_one_by_one(connection)
                if table == "checkpoint_writes" and row["checkpoint_id"] == newest
            ]
        ended = at_the_end(graph, None, THREAD)

    numbers = [int(found[1]) for each in lost if (found := re.search(r"(\d+) of the wri", each))]
    assert len(numbers) == len(lost) > 1, lost
    assert max(numbers) > 1 == min(numbers), "some are in one row"
    assert essence(ended) == whole


def refusal(graph: Any) -> str:
    """Why a thread can not be read."""
    with pytest.raises(DamagedState) as refused:
        graph.get_state(THREAD)
    return str(refused.value)


def test_an_older_damaged_checkpoint_leaves_the_newest_as_it_is(
    postgres_url: str, tmp_path: Path
) -> None:
    """Its history can not be told, which is said in one line; where it stands, it can."""
    with open_postgres(postgres_url) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        old = [*graph.get_state_history(THREAD)][5].config["configurable"]["checkpoint_id"]
        with restored(postgres_url) as connection:
            connection.execute(
                "UPDATE checkpoints SET checkpoint = checkpoint - 'ts' WHERE checkpoint_id = %s",
                [old],
            )

            with pytest.raises(DamagedState, match=f"checkpoint {old} of thread 't': its row"):
                next(graph.get_state_history(THREAD))
            newest = graph.get_state(THREAD)

    assert newest.values["result"].completed


def test_what_was_stored_before_there_were_manifests_is_read(
    postgres_url: str, tmp_path: Path
) -> None:
    """Rows as LangGraph itself writes them: a thread of old goes on."""
    with open_postgres(postgres_url) as pg:
        whole = finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        with restored(postgres_url) as connection:
            connection.execute("UPDATE checkpoints SET checkpoint = checkpoint - 'daruma'")
            for table in TABLES[1:]:
                store_as(connection, table, lambda value: (value[0].split("/")[0], value[1]))
            killed_before(postgres_url, graph, "settle")
            read = graph.get_state(THREAD)
            again = at_the_end(graph, None, THREAD)

    assert read.next == ("settle",)
    assert essence(again) == essence(whole)


def test_what_was_stored_before_values_were_made_small_is_read(
    postgres_url: str, tmp_path: Path
) -> None:
    """Beside what is stored since: a thread goes on across both forms."""
    with open_postgres(postgres_url) as pg:
        whole = finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        with restored(postgres_url) as connection:
            changed = [store_as(connection, table, with_a_digest) for table in TABLES[1:]]
            killed_before(postgres_url, graph, "settle")
            read = graph.get_state(THREAD)
            again = at_the_end(graph, None, THREAD)

    assert all(changed)
    assert read.next == ("settle",)
    assert essence(again) == essence(whole)


def with_a_digest(value: Typed) -> Typed:
    """Return a value in the form that all had."""
    kind, payload = value
    digest = blake2b(kind.encode() + b"\0" + payload, digest_size=8).digest()
    return f"checked:{kind}", digest + payload


def test_another_graph_on_the_same_database_has_channels_of_its_own(postgres_url: str) -> None:
    """What the machine's channels hold is nothing to a foreign graph with the same names."""
    with open_postgres(postgres_url) as pg:
        builder = StateGraph(Foreign).add_node("plan", lambda _: {"plan": ["a", "list"]})
        foreign: Any = builder.add_edge(START, "plan").compile(pg.checkpointer)
        foreign.invoke({"task": "a text"}, THREAD)

        assert foreign.get_state(THREAD).values == {"task": "a text", "plan": ["a", "list"]}
        with pytest.raises(DamagedState, match="channel 'task' holds a str"):
            build_graph("scripted:none", settings=Settings(), persistence=pg).get_state(THREAD)
