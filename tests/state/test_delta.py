"""A channel that grows keeps what is new, and whole copies ever more rarely (DU-08)."""

from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.pregel._checkpoint import delta_channels_to_snapshot
from tests.parts import memory

from daruma.state.channels import GrowingDelta, RareDelta, State
from daruma.state.steps import Step, append_steps

GROWING: Any = GrowingDelta(append_steps, list)
RARE: Any = RareDelta(append_steps, list, snapshot_frequency=1)


def copies(writes: int, made: Any = GROWING) -> list[int]:
    """Of how many items the whole copies are that LangGraph keeps of a channel."""
    channel = made.from_checkpoint([])
    counters, kept = (0, 0), []
    for _ in range(writes):
        channel.update([[Step(kind="think", task_id="t")]])
        counters = (counters[0] + 1, counters[1] + 1)
        if delta_channels_to_snapshot({"steps": channel}, {"steps": counters}, {"steps": "1"}):
            kept.append(len(channel.get()))
            counters = (0, 0)
    return kept


def test_whole_copies_come_each_time_the_history_has_doubled() -> None:
    """So that all of them are no more than twice of it, and half of it is read from writes."""
    assert copies(3500) == [100, 200, 400, 800, 1600, 3200]
    assert sum(copies(3500)) < 2 * 3500
    assert copies(99) == []


def test_what_is_seldom_written_is_copied_at_once_while_it_is_little() -> None:
    """So that it is not looked for in the whole thread; of much there are copies more rarely."""
    assert copies(20, RARE) == [*range(1, 15), 16, 18, 20]
    assert sum(copies(400, RARE)) < 9 * 400


def test_a_copy_of_a_channel_and_one_that_was_read_keep_the_same_measure() -> None:
    """LangGraph copies channels for every router."""
    channel: Any = GrowingDelta(append_steps, list).from_checkpoint([0] * 500)

    for other in (channel.copy(), channel.copy().copy(), channel.from_checkpoint([0] * 500)):
        assert other.snapshot_frequency == 250
    emptied = channel.copy()
    emptied.value = []
    assert emptied.snapshot_frequency == 100
    assert channel.copy().from_checkpoint([]).snapshot_frequency == 100


@pytest.mark.parametrize(
    ("name", "kind"),
    [("messages", GrowingDelta), ("steps", GrowingDelta), ("savepoints", RareDelta)],
)
def test_all_histories_of_the_machine_are_kept_so(name: str, kind: type) -> None:
    """Also in the form that LangGraph makes of the annotation."""
    graph: Any = StateGraph(State).add_node("idle", lambda _: {}).add_edge(START, "idle")

    assert type(graph.compile(memory()).channels[name]) is kind
