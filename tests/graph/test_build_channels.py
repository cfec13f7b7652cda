"""The channels of the graph: histories as writes and copies; what updates make of a state."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any, get_type_hints

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import LastValue
from langgraph.channels.base import BaseChannel
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.graph import START, StateGraph
from langgraph.pregel._checkpoint import delta_channels_to_snapshot
from langgraph.types import Overwrite
from tests.parts import (
    a_call,
    a_clarification,
    a_failure,
    a_phase,
    a_plan,
    a_savepoint,
    a_state,
    memory,
    taken,
)

from daruma.graph.build import Channels, GrowingDelta, RareDelta
from daruma.state.channels import DELTA, FIRST_COPY, State, Update, apply_update
from daruma.state.plan import Report
from daruma.state.savepoint import Drifted
from daruma.state.steps import Step, append_steps

# --- A channel that grows keeps what is new, and whole copies ever more rarely (DU-08).

GROWING: Any = GrowingDelta(append_steps, list)
MESSAGES: Any = GrowingDelta(append_steps, list, snapshot_frequency=FIRST_COPY)
RARE: Any = RareDelta(append_steps, list, snapshot_frequency=1)


def copies(writes: int, made: Any = GROWING, of_task: int = 10_000) -> list[int]:
    """Of how many items the whole copies are that LangGraph keeps of a channel."""
    channel = made.from_checkpoint([])
    counters, kept = (0, 0), []
    for number in range(writes):
        channel.update([[Step(kind="think", task_id=f"t/{number // of_task}")]])
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


def test_of_many_tasks_there_are_more_copies_so_that_a_new_one_has_little_to_read() -> None:
    """DU-08: when a task begins at most a quarter of the thread is read from writes."""
    kept = copies(3500, MESSAGES, of_task=5)

    assert all(more - few <= max(70, more // 4 + 5) for few, more in pairwise([0, *kept]))
    assert all(each % 5 == 1 for each in kept)
    assert sum(kept) < 6 * 3500
    assert copies(2499, MESSAGES) == []


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
    graph: Any = StateGraph(Channels).add_node("idle", lambda _: {}).add_edge(START, "idle")

    assert type(graph.compile(memory()).channels[name]) is kind


# --- A history is read without LangGraph as with it (FA-13).

FIRST, SECOND, THIRD = ([HumanMessage(each, id=each)] for each in "abc")
REPLAYS: dict[str, tuple[Any, list[Any]]] = {
    "nothing": ([], []),
    "writes": ([], [FIRST, SECOND]),
    "a copy": (_DeltaSnapshot(FIRST), []),
    "writes after a copy": (_DeltaSnapshot(FIRST), [SECOND, [RemoveMessage(id="a")]]),
    "writes after a plain list": (FIRST, [SECOND]),
    "set anew": (FIRST, [SECOND, Overwrite(THIRD), FIRST]),
    "set anew to nothing": (FIRST, [Overwrite(None)]),
    "set anew, as JSON": (FIRST, [{"__overwrite__": SECOND}, {"type": "human", "content": "x"}]),
    "set anew, as JSON of its fields": (FIRST, [{"type": "__overwrite__", "value": SECOND}]),
}


@pytest.mark.parametrize("case", REPLAYS)
def test_a_history_is_replayed_as_langgraph_does(case: str) -> None:
    """Of copies and writes; the last ``Overwrite`` is what it begins with."""
    copy, writes = REPLAYS[case]
    channel: Any = StateGraph(Channels).channels["messages"].from_checkpoint(copy)
    channel.replay_writes([("task", "messages", each) for each in writes])

    found = DELTA["messages"].replayed(copy, writes)
    assert [(each.type, each.content) for each in found] == [
        (each.type, each.content) for each in channel.get()
    ]


# --- What an update makes of the state is what LangGraph makes of it.

ASKED, ANSWERED = HumanMessage("Do it", id="1"), AIMessage("Done.", id="2")
BEFORE = a_state(
    messages=[ASKED],
    mode="react",
    workspace="somewhere",
    steps=taken("think"),
    savepoints=[a_savepoint("1/a")],
    drifted=Drifted(task_id="t/1", paths=("a",)),
    calls=(a_call("c1"), a_call("c2")),
    reports=(Report(phase=a_phase("a")),),
    failure=a_failure(),
)
UPDATES: dict[str, Any] = {
    "nothing": {},
    "a message": {"messages": [ANSWERED]},
    "no message left": {"messages": [RemoveMessage(id="1")]},
    "a step and a savepoint": {"steps": taken("verify"), "savepoints": [a_savepoint("1/b")]},
    "drifted files": {"drifted": Drifted(task_id="t/1", paths=("b",))},
    "one call": {"calls": a_call("c2", "done")},
    "other calls": {"calls": (a_call("c3"),)},
    "a report": {"reports": Report(phase=a_phase("b"))},
    "what a caller kept": {"continuity": {"status": "fresh"}},
    "plain values": {"failure": None, "origin": a_failure(), "plan": a_plan(a_phase("p"))},
    "a clarification": {"clarification": a_clarification()},
    "what is unknown": {"unheard_of": 1},
}


def by_langgraph(state: State, update: Mapping[str, Any]) -> dict[str, Any]:
    """The values after an update, of channels that held a state."""
    channels = {name: _holding(name, state) for name in (each.name for each in fields(State))}
    for name, channel in channels.items():
        channel.update([update[name]] if name in update else [])
    return {name: each.get() for name, each in channels.items() if each.is_available()}


def _holding(name: str, state: State) -> BaseChannel[Any, Any, Any]:
    channel = StateGraph(Channels).channels[name].copy()
    if value := getattr(state, name):
        channel.update([value])
    return channel


@pytest.mark.parametrize("state", [BEFORE, a_state()], ids=["in a task", "at the start"])
@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_it_is_what_the_channels_hold(state: State, update: Update) -> None:
    """Appended, replaced, removed, gone after one superstep: all kinds of channels."""
    after = apply_update(state, update)

    assert after == State(**by_langgraph(state, update))


def test_every_channel_that_nodes_write_is_known() -> None:
    """Each of them arrives, whatever it holds."""
    written = set(get_type_hints(Update))
    plain = {
        name
        for name, channel in StateGraph(Channels).channels.items()
        if isinstance(channel, LastValue) and name in written
    }
    update: Any = dict.fromkeys(plain, "written")

    after = apply_update(a_state(), update)

    assert len(plain) > 10
    assert {asdict(after)[name] for name in plain} == {"written"}


def test_what_is_applied_to_stays_as_it_is() -> None:
    """The state belongs to the node, which others may still read."""
    apply_update(BEFORE, {"messages": [ANSWERED], "steps": taken("verify")})

    assert BEFORE.messages == [ASKED]
    assert len(BEFORE.steps) == 1
