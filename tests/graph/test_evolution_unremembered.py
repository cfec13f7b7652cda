"""Learning from tasks of which no thread is kept: each of them is the first of its thread."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from tests.parts import settings
from tests.scripted_runs import calls, say, shout

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel

GOALS = ("Fix the rounding of invoices", "Write a poem on sheep", "Deploy the kitchen website")
STUCK = [calls("shout")] * 20


def ended(store: InMemoryStore, goal: str, config: Any, script: list[Any]) -> None:
    """Have one task end without a checkpointer, and be learned from."""
    given = settings(sandbox={"require": "none"}, evolution={"success_sample_rate": 1.0})
    graph = build_graph(ScriptedChatModel(script=script), [shout], given, store=store)
    graph.invoke({"messages": [("user", goal)], "mode": "react"}, config)
    assert graph.evolution.drain()


@pytest.mark.parametrize("config", [None, {"configurable": {"thread_id": "t"}}])
def test_tasks_without_a_checkpointer_are_not_taken_for_one(config: Any) -> None:
    """EV-04: all of them have the same id; none takes another's place on record."""
    store = InMemoryStore()

    for goal in GOALS:
        ended(store, goal, config, STUCK)
    ended(store, "Say when it is done", config, [say()])

    kept = [item.value for item in store.search(("daruma", "evolution", "default", "experiences"))]
    found = store.search(("daruma", "evolution", "default", "pitfalls"))
    assert {each["goal"]: each["status"] for each in kept} == {
        **dict.fromkeys(GOALS, "failed"),
        "Say when it is done": "completed",
    }
    assert len({each["task_id"] for each in kept}) == 4
    assert sorted(item.value["pitfall"]["goals"][0] for item in found) == sorted(GOALS)
