"""A graph of async functions takes the same path however it is called (MO-09)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.pregel._utils import find_subgraph_pregel
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt

from daruma.graph.sync import async_node


def extend(kept: list[str], writes: list[list[str]]) -> list[str]:
    return [*kept, *(word for write in writes for word in write)]


@dataclass(frozen=True)
class Context:
    user: str


@dataclass(frozen=True)
class State:
    said: Annotated[list[str], DeltaChannel(extend)] = field(default_factory=list)
    count: Annotated[int, add] = 0


@dataclass(frozen=True)
class Question:
    text: str


async def greet(_: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
    runtime.stream_writer({"greeted": runtime.context.user})
    return {"said": [f"{runtime.context.user} on {config['configurable']['thread_id']}"]}


async def ask(question: Question) -> dict[str, Any]:
    return {"said": [interrupt(question.text)], "count": 1}


async def fail(state: State) -> None:
    raise LookupError(f"after {state.count}")


async def handle(_: State, error: NodeError) -> Command[Any]:
    return Command(goto=END, update={"said": [f"{error.node}: {error.error}"]})


def to_each(_: State) -> list[Send]:
    return [Send("ask", Question(text)) for text in ("red?", "blue?")]


def graph() -> Any:
    builder = StateGraph(State, context_schema=Context)
    builder.add_node(async_node(greet))
    builder.add_node("ask", async_node(ask), input_schema=Question)
    builder.add_node("fail", async_node(fail), error_handler=async_node(handle))
    builder.add_edge(START, "greet")
    builder.add_conditional_edges("greet", to_each, ["ask"])
    builder.add_edge("ask", "fail")
    return builder.compile(InMemorySaver())


Calls = Callable[[Any, Any], Awaitable[dict[str, Any]]]
GIVEN: dict[str, Any] = {"config": {"configurable": {"thread_id": "t"}}, "context": Context("Ann")}


async def invoke(machine: Any, given: Any) -> dict[str, Any]:
    return dict(machine.invoke(given, **GIVEN))


async def invoke_in_thread(machine: Any, given: Any) -> dict[str, Any]:
    return dict(await asyncio.to_thread(machine.invoke, given, **GIVEN))


async def ainvoke(machine: Any, given: Any) -> dict[str, Any]:
    return dict(await machine.ainvoke(given, **GIVEN))


async def stream(machine: Any, given: Any) -> dict[str, Any]:
    *_, last = machine.stream(given, stream_mode="values", **GIVEN)
    return {**last, "__interrupt__": machine.get_state(GIVEN["config"]).interrupts}


async def astream(machine: Any, given: Any) -> dict[str, Any]:
    *_, last = [each async for each in machine.astream(given, stream_mode="values", **GIVEN)]
    return {**last, "__interrupt__": machine.get_state(GIVEN["config"]).interrupts}


@pytest.mark.parametrize("call", [invoke, invoke_in_thread, ainvoke, stream, astream])
async def test_the_path_is_the_same_however_the_graph_is_called(call: Calls) -> None:
    """Injection, fan-out, interrupts answered by id, and the error handler all take part."""
    machine = graph()

    asked = await call(machine, {})
    answers = {question.id: question.value.upper() for question in asked["__interrupt__"]}
    ended = await call(machine, Command(resume=answers))

    assert sorted(answers.values()) == ["BLUE?", "RED?"]
    assert ended["said"] == ["Ann on t", "RED?", "BLUE?", "fail: after 2"]


async def test_what_a_node_streams_arrives_from_the_background_loop_too() -> None:
    """The stream writer works across the bridge."""
    events = graph().stream({}, stream_mode="custom", **GIVEN)

    assert list(events) == [{"greeted": "Ann"}]


async def test_nodes_keep_their_name_and_signature() -> None:
    """LangGraph injects by the names and annotations that it finds on the node."""
    node = async_node(greet)

    assert node.get_name() == "greet"
    assert set(node.func_accepts) == {"runtime", "config"}


@pytest.mark.parametrize("call", [invoke, ainvoke])
async def test_an_error_without_handler_reaches_the_caller_as_it_was_raised(call: Calls) -> None:
    """The bridge adds no wrapper of its own."""
    builder = StateGraph(State).add_node(async_node(fail)).add_edge(START, "fail")

    with pytest.raises(LookupError, match="after 0"):
        await call(builder.compile(InMemorySaver()), {})


def test_a_node_is_not_taken_apart_when_its_graph_is_built() -> None:
    """LangGraph looks for graphs in the code of each; ours holds none, and there are many nodes."""
    held: Any = StateGraph(State).add_node("fail", fail).add_edge(START, "fail").compile()

    async def within(state: State, runtime: Runtime[Context]) -> Any:
        return await held.ainvoke(state, context=runtime.context)

    node = async_node(within)

    assert find_subgraph_pregel(node) is None
    assert set(node.func_accepts) == {"runtime"}
