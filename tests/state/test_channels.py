"""The state of the machine: what nodes may read, and what they may write."""

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
    a_task,
    memory,
    taken,
)

from daruma.state.channels import (
    FIRST_COPY,
    GrowingDelta,
    RareDelta,
    State,
    Update,
    apply_update,
    refuse_misfits,
    state_of,
)
from daruma.state.errors import DamagedState
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
    graph: Any = StateGraph(State).add_node("idle", lambda _: {}).add_edge(START, "idle")

    assert type(graph.compile(memory()).channels[name]) is kind


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
    channel = StateGraph(State).channels[name].copy()
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
        for name, channel in StateGraph(State).channels.items()
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


@pytest.mark.parametrize("values", [{}, {"task": None, "steps": taken("think")}, vars(BEFORE)])
def test_a_state_is_that_of_its_constructor(values: dict[str, Any]) -> None:
    """With every default where a channel holds nothing; no list is shared."""
    state = state_of(values)

    assert state == State(**values)
    assert list(vars(state)) == list(vars(State(**values)))
    assert state_of({}).messages is not state_of({}).messages


# --- What a channel holds is of the type that the state says, however it was stored (DU-05).

TASK = a_task()
PLAN = a_plan(a_phase("p1"))
STEP = Step(kind="think", task_id="1")
CALL = a_call()

FITTING: dict[str, Any] = {
    "messages": [HumanMessage("hello"), AIMessage("hi")],
    "mode": "react",
    "workspace": "/a",
    "task": TASK,
    "plan": PLAN,
    "steps": [STEP],
    "calls": [CALL],
    "failure": None,
    "foreign": object(),
}


def test_what_the_state_holds_fits() -> None:
    """As it is made, as msgpack gives it back, and as a snapshot; other channels are let be."""
    refuse_misfits(FITTING)
    refuse_misfits({"calls": (CALL,), "steps": _DeltaSnapshot([STEP])})
    refuse_misfits(vars(State()))


@pytest.mark.parametrize(
    ("channel", "value"),
    [
        ("task", "a text"),
        ("task", PLAN),
        ("plan", [PLAN]),
        ("plan", {"goal": "g"}),
        ("mode", "no such mode"),
        ("workspace", 5),
        ("messages", ["a text"]),
        ("messages", None),
        ("messages", _DeltaSnapshot([TASK])),
        ("steps", [STEP, TASK]),
        ("steps", True),
        ("calls", CALL),
        ("failure", False),
        ("result", PLAN),
    ],
)
def test_another_value_is_refused_by_the_name_of_its_channel(channel: str, value: Any) -> None:
    """A record that validates is still none of this channel's."""
    with pytest.raises(DamagedState, match=f"channel '{channel}' holds a {kind_of(value)}"):
        refuse_misfits({**FITTING, channel: value})


def kind_of(value: Any) -> str:
    return type(value.value if isinstance(value, _DeltaSnapshot) else value).__name__


def test_what_nodes_and_callers_write_fits() -> None:
    """One call of many, a value that takes the place of all, whatever a message can be made of."""
    writes = [
        ("calls", CALL),
        ("calls", [CALL]),
        ("steps", [STEP]),
        ("steps", Overwrite([STEP])),
        ("plan", None),
        ("messages", "a text"),
        ("messages", [RemoveMessage(id="1")]),
        ("branch:to:main", object()),
    ]

    refuse_misfits({}, writes)


@pytest.mark.parametrize(
    ("channel", "value"),
    [("plan", TASK), ("steps", [TASK]), ("steps", Overwrite([TASK])), ("calls", "a text")],
)
def test_another_write_is_refused_as_well(channel: str, value: Any) -> None:
    """It waits to be applied: the damage would be the next checkpoint's."""
    with pytest.raises(DamagedState, match=f"a {type(value).__name__} was written to .*{channel}"):
        refuse_misfits({}, [(channel, value)])
