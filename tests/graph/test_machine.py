"""The table is whole: every outcome has a target, every node is reached and can end."""

from typing import get_args, get_type_hints

import pytest
from langgraph.graph import END
from tests.parts import a_call, a_state

from daruma.graph.build import node
from daruma.graph.machine import ENTRY, ON_BUG, TABLE, node_of, ready_calls
from daruma.state.calls import Dispatch
from daruma.state.channels import State

NAMES = {
    "intake",
    "plan",
    "spec_review",
    "begin",
    "member",
    "merge",
    "main",
    "compress",
    "repair",
    "clarify",
    "gate",
    "tool",
    "verify",
    "reflect",
    "recovery",
    "consult",
    "pause",
    "rollback",
    "settle",
    "emergency",
    "finish",
    "hold",
}
EDGES = {name: {node_of(target) for target in edges.values()} for name, (_, edges) in TABLE.items()}


def reached(start: str, edges: dict[str, set[str]]) -> set[str]:
    """Every node that can be come to from a start, with itself."""
    found, fresh = {start}, {start}
    while fresh:
        fresh = set().union(*(edges.get(name, set()) for name in fresh)) - found
        found |= fresh
    return found


def test_the_nodes_have_their_names() -> None:
    """DESIGN: names that users and stored checkpoints know."""
    assert set(TABLE) == NAMES


@pytest.mark.parametrize("name", TABLE)
def test_a_routers_outcomes_are_those_of_the_table(name: str) -> None:
    """A stray label would be an error at run time, an unused one a dead edge."""
    router, edges = TABLE[name]
    outcomes = get_args(get_type_hints(router)["return"])

    assert set(outcomes) == set(edges)
    assert len(outcomes) == len(set(outcomes))
    assert router.__name__ == f"after_{name}"


@pytest.mark.parametrize("name", TABLE)
def test_every_target_is_there(name: str) -> None:
    """LangGraph ends silently at a target that it does not know."""
    assert EDGES[name] <= {*TABLE, END}


@pytest.mark.parametrize("name", TABLE)
def test_every_node_is_reached_and_can_end(name: str) -> None:
    """By the table alone, without bugs."""
    assert name in reached(ENTRY, EDGES)
    assert END in reached(name, EDGES)


def test_only_the_end_ends() -> None:
    """Every task gets its result: nothing else leads out of the machine."""
    assert {name for name, targets in EDGES.items() if END in targets} == {"finish"}


def test_every_bug_has_a_way_to_the_end() -> None:
    """Each node's bug leads to a node that is there, and on bugs alone the machine ends too."""
    bugs = {name: {target} for name, target in ON_BUG.items()}

    assert set(ON_BUG) == set(TABLE)
    assert set(ON_BUG.values()) <= {*TABLE, END}
    assert all(END in reached(name, bugs) for name in TABLE)


def test_a_tools_bug_leads_where_its_siblings_go() -> None:
    """Else both ways would be gone at the same time."""
    assert {ON_BUG["tool"]} == EDGES["tool"]


@pytest.mark.parametrize("name", TABLE)
def test_every_node_is_the_function_of_its_name(name: str) -> None:
    """One file per node, with one function of that name."""
    function = node(name)

    assert function.__module__ == f"daruma.nodes.{name}"
    assert function.__name__ == name


def test_a_tool_is_sent_only_what_may_run() -> None:
    """TL-02: one dispatch for each ready call, with the task it needs."""
    calls = (a_call("a"), a_call("b", "awaiting"), a_call("c"), a_call("d", "failed"))
    state = a_state(calls=calls)
    assert state.task is not None

    sent = ready_calls(state)

    assert sent == [
        Dispatch(task=state.task, call=calls[0]),
        Dispatch(task=state.task, call=calls[2]),
    ]
    assert ready_calls(State(calls=calls)) == []
