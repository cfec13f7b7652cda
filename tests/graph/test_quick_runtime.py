"""What a task is told of its run is what LangGraph would tell it."""

from dataclasses import fields
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import ExecutionInfo, Runtime, get_runtime
from langgraph.store.memory import InMemoryStore
from tests.parts import settings
from tests.scripted_runs import RecordingModel, call, calls, say
from typing_extensions import TypedDict

from daruma.graph.build import build_graph
from daruma.graph.fast_path import QuickRuntime, quickly
from daruma.graph.run import Machine

ASKED: Any = {"messages": "hi", "mode": "react"}
INFO = ExecutionInfo(checkpoint_id="c", checkpoint_ns="n", task_id="t", thread_id="x", run_id="r")


def full(kind: Any) -> Any:
    """Return a runtime with something of its own in each field."""
    own = {each.name: object() for each in fields(Runtime)}
    return kind(**own | {"execution_info": INFO})


def told(runtime: Runtime[Any]) -> dict[str, Any]:
    """Return what is in each of its fields."""
    return {each.name: getattr(runtime, each.name) for each in fields(Runtime)}


@pytest.mark.parametrize("name", [each.name for each in fields(Runtime)])
def test_a_field_is_changed_and_the_others_stay(name: str) -> None:
    """All that LangGraph's kind has, whatever they are."""
    quick, other = full(QuickRuntime), object()
    changed = quick.override(**{name: other})

    assert type(changed) is QuickRuntime
    assert told(changed) == told(quick) | {name: other}
    assert told(quick)["execution_info"] is INFO


@pytest.mark.parametrize("changes", [{"node_attempt": 3}, {"node_first_attempt_time": 1.5}, {}])
def test_what_is_known_of_the_attempt_is_what_langgraph_makes_of_it(changes: Any) -> None:
    """Nothing else changes, and the one before stays as it was."""
    quick = full(QuickRuntime)
    patched = quick.patch_execution_info(**changes)
    langgraphs = Runtime(**told(quick)).patch_execution_info(**changes)

    assert told(patched) == told(langgraphs)
    assert quick.execution_info == INFO


def test_what_does_not_exist_can_not_be_patched() -> None:
    """As with LangGraph's own."""
    with pytest.raises(RuntimeError, match="Cannot patch execution_info"):
        QuickRuntime().patch_execution_info(node_attempt=1)


def test_what_a_run_is_given_comes_before_what_is_around_it() -> None:
    """As LangGraph puts the two together."""
    around, given = full(QuickRuntime), Runtime(context=settings(), previous=object())
    merged = around.merge(given)

    assert type(merged) is QuickRuntime
    assert told(merged) == told(Runtime(**told(around)).merge(given))


def test_a_run_within_anothers_takes_on_what_that_one_has() -> None:
    """Its store and its context, as ever."""
    config = RunnableConfig(configurable={"__pregel_runtime": Runtime()})

    assert quickly(config, None) is config


class Outer(TypedDict):
    """The state of another graph."""

    status: str


SEEN: list[Runtime[Any]] = []


def look(text: str) -> str:
    """Look at the runtime."""
    SEEN.append(get_runtime())
    return text


def looking(**given: Any) -> Machine:
    """Return a machine whose model calls the tool that looks."""
    SEEN.clear()
    model = RecordingModel(script=[calls(call("look")), say()])
    return build_graph(model, [look], settings(), **given)


async def test_the_tasks_of_a_run_have_its_settings_and_the_graphs_store() -> None:
    """And know which attempt it is, and of which thread."""
    store, own = InMemoryStore(), settings(budgets={"max_steps": 7})
    await looking(store=store).ainvoke(ASKED, {"configurable": {"thread_id": "x"}}, context=own)

    (seen,) = SEEN
    assert type(seen) is QuickRuntime
    assert seen.store is store
    assert seen.context == own
    assert seen.execution_info is not None
    assert (seen.execution_info.thread_id, seen.execution_info.node_attempt) == ("x", 1)
    assert seen.execution_info.node_first_attempt_time


async def test_a_run_within_another_graph_has_that_ones_store() -> None:
    """As LangGraph has it for each graph."""
    store, machine = InMemoryStore(), looking()

    async def node(state: Outer) -> Outer:
        return {**state, "status": (await machine.ainvoke(ASKED))["result"].status}

    outer = StateGraph(Outer)
    outer.add_node("node", node)
    outer.add_edge(START, "node")
    await outer.compile(store=store).ainvoke({"status": ""})

    (seen,) = SEEN
    assert type(seen) is Runtime
    assert seen.store is store
