"""Where a run goes after a node: its route reads what the node left, at no cost for the rest."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import HumanMessage
from langgraph.channels import LastValue
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, Send
from tests.parts import memory
from typing_extensions import override

from daruma.graph.fast_path import add_branch, run_quietly
from daruma.state.channels import State


class Counted(LastValue[Any]):
    """A channel that counts how often it is copied, and read."""

    copies = 0
    reads = 0

    @override
    def copy(self) -> Any:
        Counted.copies += 1
        return super().copy()

    @override
    def get(self) -> Any:
        Counted.reads += 1
        return super().get()


@dataclass
class Walk:
    """A graph of one node, whose route keeps what it is given and where it is called."""

    update: Any
    seen: list[State] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)

    def graph(self, **compiled: Any) -> Any:
        return self.builder().add_edge(START, "work").compile(**compiled)

    def builder(self) -> Any:
        def after(state: State) -> str:
            self.seen.append(state)
            self.threads.add(threading.get_ident())
            return "done"

        async def work(_: State) -> Any:
            return self.update

        builder: Any = StateGraph(State)
        builder.add_node("work", work)
        add_branch(builder, "work", after, {"done": END})
        return builder


class Tracer(BaseCallbackHandler):
    """Keeps the names of runs."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @override
    def on_chain_start(self, *_: Any, **given: Any) -> None:
        self.names.append(given["name"])


class AsyncTracer(AsyncCallbackHandler):
    """Does the same, asynchronously."""

    def __init__(self) -> None:
        self.names: list[str] = []

    @override
    async def on_chain_start(self, *_: Any, **given: Any) -> None:
        self.names.append(given["name"])


async def test_a_route_reads_what_the_node_left() -> None:
    """With what was there before, which the node did not touch."""
    walk = Walk({"continuity": {"status": "fresh"}})

    await walk.graph().ainvoke({"messages": [("user", "hi")]})

    (state,) = walk.seen
    assert state.continuity == {"status": "fresh"}
    assert [message.text for message in state.messages] == ["hi"]


async def test_a_route_is_called_where_the_run_is() -> None:
    """It is pure: a thread for it would only be waited for."""
    walk = Walk({})

    await walk.graph().ainvoke({})

    assert walk.threads == {threading.get_ident()}


async def test_no_channel_is_copied_for_a_route() -> None:
    """A thread has many, and some hold its whole history."""
    graph = Walk({}).graph()
    graph.channels["plan"] = Counted(Any, "plan")
    Counted.copies = 0

    await graph.ainvoke({})

    assert Counted.copies == 0


@pytest.mark.parametrize("tracer", [Tracer(), AsyncTracer()])
async def test_a_tracer_is_told_of_a_route(tracer: Any) -> None:
    """As of any other: it shows which way a run went."""
    walk = Walk({})

    await walk.graph().ainvoke({}, {"callbacks": [tracer]})

    assert "after" in tracer.names
    assert len(walk.seen) == 1


def test_a_synchronous_run_goes_the_same_way() -> None:
    """Whether somebody listens or not."""
    walk, tracer = Walk({"continuity": {"status": "fresh"}}), Tracer()
    graph = walk.graph(checkpointer=memory())
    at: Any = {"configurable": {"thread_id": "t"}}

    graph.update_state(at, walk.update, as_node="work")
    graph.update_state({**at, "callbacks": [tracer]}, walk.update, as_node="work")

    assert [state.continuity for state in walk.seen] == [{"status": "fresh"}] * 2


def test_a_state_may_be_overwritten_from_outside() -> None:
    """LangGraph's own form, in which no node of ours writes."""
    walk = Walk(None)
    graph = walk.graph(checkpointer=memory())

    graph.update_state(
        {"configurable": {"thread_id": "t"}},
        {"messages": Overwrite([("user", "anew")])},
        as_node="work",
    )

    assert len(walk.seen[0].messages) == 1


async def test_a_route_takes_what_a_node_of_ours_was_given() -> None:
    """It stands in the same superstep: the channels hold nothing else."""
    update = {"continuity": {"status": "fresh"}}
    heard, quiet = Walk(update), Walk(update)
    reads = [await _reads(heard, callbacks=[Tracer()]), await _reads(quiet)]

    assert heard.seen == quiet.seen
    assert reads[0] == reads[1] + 1


async def _reads(walk: Walk, **config: Any) -> int:
    """Count how often a channel is read in a run."""
    graph = walk.graph()
    run_quietly(graph, ["work"])
    graph.channels["plan"] = Counted(Any, "plan")
    Counted.reads = 0
    await graph.ainvoke({"messages": [HumanMessage("hi", id="1")]}, config)
    return Counted.reads


async def test_a_route_after_one_of_several_reads_the_state() -> None:
    """That one was sent a part of it, or something else."""
    walk = Walk({})

    async def nothing(_: State) -> dict[str, Any]:
        return {}

    def sending(_: State) -> list[Send]:
        return [Send("work", "a part")]

    builder = walk.builder()
    builder.add_node("first", nothing).add_edge(START, "first")
    add_branch(builder, "first", sending, {"work": "work"})
    graph = builder.compile()
    run_quietly(graph, ["first", "work"])
    await graph.ainvoke({"messages": [("user", "hi")]})

    (state,) = walk.seen
    assert [message.text for message in state.messages] == ["hi"]
