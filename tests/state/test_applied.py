"""What an update makes of the state is what LangGraph makes of it."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_type_hints

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.channels import LastValue
from langgraph.channels.base import BaseChannel
from langgraph.graph import StateGraph
from tests.parts import (
    a_call,
    a_clarification,
    a_failure,
    a_phase,
    a_plan,
    a_savepoint,
    a_state,
    taken,
)

from daruma.state.channels import State, Update, applied, state_of
from daruma.state.plan import Report
from daruma.state.savepoint import Drifted

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
    after = applied(state, update)

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

    after = applied(a_state(), update)

    assert len(plain) > 10
    assert {asdict(after)[name] for name in plain} == {"written"}


def test_what_is_applied_to_stays_as_it_is() -> None:
    """The state belongs to the node, which others may still read."""
    applied(BEFORE, {"messages": [ANSWERED], "steps": taken("verify")})

    assert BEFORE.messages == [ASKED]
    assert len(BEFORE.steps) == 1


@pytest.mark.parametrize("values", [{}, {"task": None, "steps": taken("think")}, vars(BEFORE)])
def test_a_state_is_that_of_its_constructor(values: dict[str, Any]) -> None:
    """With every default where a channel holds nothing; no list is shared."""
    state = state_of(values)

    assert state == State(**values)
    assert list(vars(state)) == list(vars(State(**values)))
    assert state_of({}).messages is not state_of({}).messages
