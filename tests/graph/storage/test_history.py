"""A delta channel's history is read back to its last whole copy, along its own line (DU-05)."""

from collections import Counter
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph

from daruma.graph.storage import Postgres, aopen_postgres, athread_held
from daruma.graph.storage._rows import CHAIN, History, LostAncestor, Walk, read_history, refuse_gaps

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def extend(kept: list[str], writes: list[list[str]]) -> list[str]:
    return [*kept, *(word for write in writes for word in write)]


class State(TypedDict):
    often: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=5)]
    never: Annotated[list[str], DeltaChannel(extend, snapshot_frequency=1000)]


async def speak(state: State) -> dict[str, Any]:
    return {"often": [f"word {len(state['often'])}"]}


def talker(postgres: Postgres) -> Any:
    return StateGraph(State).add_node(speak).add_edge(START, "speak").compile(postgres.checkpointer)


async def traced(postgres: Postgres, config: Any, *channels: str) -> History:
    place = "t", "", config["configurable"]["checkpoint_id"]
    async with postgres.checkpointer.reading() as cursor:
        return await read_history(cursor, place, channels)


async def test_a_run_begins_with_the_history_that_it_has_looked_at(postgres_url: str) -> None:
    """DU-08: read once for both, and anew after that; who holds no thread reads each time."""
    async with aopen_postgres(postgres_url) as postgres:
        graph = talker(postgres)
        for word in ("x", "y"):
            await graph.ainvoke({"often": [], "never": [word]}, CONFIG)
        config = (await graph.aget_state(CONFIG)).config

        async def read(saver: Any) -> list[Any]:
            found = await saver.aget_delta_channel_history(config=config, channels=["never"])
            return [value for _, _, value in found["never"]["writes"]]

        async with athread_held(postgres.checkpointer, "t") as held:
            looked = await read(held)
            await postgres.checkpointer.database.statement("DELETE FROM daruma_checkpoints", ())
            began = await read(held)
            later = [await read(each) for each in (held, postgres.checkpointer)]

    assert looked == began == [["x"], ["y"]]
    assert later == [[], []]


@pytest.mark.long
@pytest.mark.parametrize(("channels", "most"), [(["often"], 15), (["often", "never"], 1000)])
async def test_only_what_came_after_the_last_copy_is_walked_through(
    postgres_url: str, channels: list[str], most: int
) -> None:
    """However long the thread is; for a channel without a copy that is all of it."""
    async with aopen_postgres(postgres_url) as postgres:
        graph = talker(postgres)
        for _ in range(15):
            await graph.ainvoke({"often": [], "never": ["x"]}, CONFIG)
        config = (await graph.aget_state(CONFIG)).config

        found = await traced(postgres, config, *channels)

    written = 15 * 3
    assert len(found.notes) <= most
    assert (len(found.notes) >= written) == ("never" in channels)
    assert ("often" in found.versions) == ("often" not in found.open)
    assert found.open.get("never", "no walk") == (None if "never" in channels else "no walk")


async def test_what_other_branches_wrote_is_no_part_of_it(postgres_url: str) -> None:
    """Each checkpoint has the words that were said before it, whatever was said beside."""
    async with aopen_postgres(postgres_url) as postgres:
        graph = talker(postgres)
        await graph.ainvoke({"often": ["a"], "never": []}, CONFIG)
        start = (await graph.aget_state(CONFIG)).config
        await graph.ainvoke({"often": ["left"], "never": []}, CONFIG)
        await graph.ainvoke({"often": ["right"], "never": []}, start)

        values = [past.values.get("often") async for past in graph.aget_state_history(CONFIG)]

    assert values[0] == ["a", "word 1", "right", "word 3"]
    assert ["a", "word 1", "left", "word 3"] in values
    assert not [each for each in values if each and "left" in each and "right" in each]


async def test_each_ancestor_is_found_by_its_key(postgres_url: str) -> None:
    """Also on a table that the database has never counted, where it guesses that it is small."""
    async with aopen_postgres(postgres_url) as postgres:
        await talker(postgres).ainvoke({"often": ["x"], "never": ["x"]}, CONFIG)
        given = {"thread": "t", "ns": "", "target": "any", "channels": ["often", "never"]}

        async with postgres.checkpointer.reading() as cursor:
            await cursor.execute(f"EXPLAIN {CHAIN}".encode(), given)
            plan = [str(row["QUERY PLAN"]).strip() for row in await cursor.fetchall()]

    assert not [line for line in plan if "Join Filter" in line or "Seq Scan" in line]
    assert [line for line in plan if "Index Cond" in line and "chain" in line]
    assert [line for line in plan if "Index Cond" in line and "each.channel" in line]


async def test_a_checkpoint_that_is_not_there_has_no_history(postgres_url: str) -> None:
    """As with LangGraph's own saver."""
    lost: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "none"}}
    async with aopen_postgres(postgres_url) as postgres:
        found = await postgres.checkpointer.aget_delta_channel_history(
            config=lost, channels=["often"]
        )

    assert found == {"often": {"writes": []}}


async def test_without_a_checkpoint_the_newest_is_meant(postgres_url: str) -> None:
    """As with LangGraph's own saver."""
    thread: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    async with aopen_postgres(postgres_url) as postgres:
        graph = talker(postgres)
        await graph.ainvoke({"often": ["a"], "never": []}, CONFIG)
        newest = (await graph.aget_state(CONFIG)).config

        of_newest, of_thread = [
            await postgres.checkpointer.aget_delta_channel_history(config=at, channels=["often"])
            for at in (newest, thread)
        ]

    assert of_thread == of_newest
    assert [value for _, _, value in of_thread["often"]["writes"]] == [["a"], ["word 1"]]


# --- What a history is replayed from is all there, or it is known what is missing (DU-05).


def note(parent: str | None, *blobs: str, **writes: int) -> dict[str, Any]:
    manifest = {"parent": parent, "blobs": list(blobs), "writes": writes, "mark": ""}
    return {"parent": parent, "manifest": manifest}


def walk(**changes: Any) -> Walk:
    """Of channel ``steps`` from 4 to 1, where there is a snapshot, with two writes at 2."""
    made: dict[str, Any] = {
        "target": "4",
        "chains": {"steps": ["3", "2", "1"]},
        "snapshots": frozenset({("steps", "1")}),
        "writes": Counter({("steps", "2"): 2, ("steps", "1"): 1}),
    }
    return Walk(**(made | changes))


NOTES = {
    "4": note("3"),
    "3": note("2", steps=2),
    "2": note("1", steps=1),
    "1": note("0", "steps"),
}


def test_a_whole_history_is_whole() -> None:
    """Up to its snapshot, whatever became of what lies before; and up to the first checkpoint."""
    refuse_gaps(walk(), NOTES)
    refuse_gaps(walk(snapshots=frozenset(), open={"steps": None}), NOTES | {"1": note(None)})


def test_writes_that_came_later_are_no_damage() -> None:
    """Another branch may have begun at the same checkpoint."""
    refuse_gaps(walk(writes=Counter({("steps", "2"): 5, ("steps", "1"): 1})), NOTES)


@pytest.mark.parametrize(
    ("changes", "notes", "reason", "since"),
    [
        ({"writes": Counter({("steps", "1"): 1})}, {}, "2 of the writes to 'steps' at 2", "2"),
        ({"writes": Counter({("steps", "2"): 2})}, {}, "1 of the writes to 'steps' at 1", "1"),
        ({"open": {"steps": "2"}}, {}, "its ancestor 2 is lost", "2"),
        ({"snapshots": frozenset()}, {}, "the snapshot of 'steps' at 1 is lost", "1"),
        ({}, {"3": note("x", steps=2)}, "its ancestor x is lost", "x"),
        (
            {"snapshots": frozenset(), "open": {"steps": None}},
            {"1": note("0")},
            "its ancestor 0 is lost",
            "0",
        ),
    ],
    ids=["writes", "writes at the snapshot", "ancestor", "snapshot", "another parent", "the first"],
)
def test_what_is_missing_is_told_with_its_place(
    changes: dict[str, Any], notes: dict[str, Any], reason: str, since: str
) -> None:
    """Checkpoints from there on are damaged, those before are not."""
    with pytest.raises(LostAncestor, match=reason) as refused:
        refuse_gaps(walk(**changes), NOTES | notes)

    assert refused.value.since == since
