"""Each task has one record, and it says how the task ended in the end."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from tests.parts import a_state, a_task, settings
from tests.scripted_runs import calls, say, shout

from daruma.graph.build import build_graph
from daruma.graph.learning import Ended, Evolution
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.state.task import Status

GOALS = ("Fix the rounding of invoices", "Write a poem on sheep", "Deploy the kitchen website")
STUCK = [calls("shout")] * 20


def ended(store: InMemoryStore, goal: str, config: Any, script: list[Any]) -> None:
    """Have one task end without a checkpointer, and be learned from."""
    given = settings(sandbox={"require": "none"}, evolution={"success_sample_rate": 1.0})
    model = ScriptedChatModel(script=script)
    graph: Any = build_graph(model, [shout], given, store=store)
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


def test_a_failed_task_that_was_taken_up_and_completed_is_not_left_as_failed() -> None:
    """EV-01: a success that is not sampled is let go, but not where it corrects a record."""
    store, evolution = InMemoryStore(), Evolution()
    none = settings(evolution={"success_sample_rate": 0.0})

    ends: list[tuple[int, Status]] = [(1, "failed"), (1, "completed"), (2, "completed")]
    for number, status in ends:
        state = a_state(task=a_task(id=f"t{number}/1"))
        evolution.hand_over(Ended(state, status, none, store))
        assert evolution.drain()

    kept = [item.value for item in store.search(("daruma", "evolution", "default", "experiences"))]
    assert [(each["task_id"], each["status"]) for each in kept] == [("t1/1", "completed")]
    assert evolution.counts.skipped == 1
