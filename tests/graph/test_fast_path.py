"""What goes round the public API of LangGraph and LangChain changes nothing but the time."""

import asyncio
import threading
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.channels import LastValue
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, Send
from tests.parts import memory
from typing_extensions import override

from daruma.graph import fast_path
from daruma.graph.build import Channels
from daruma.graph.fast_path import (
    SWITCH,
    add_branch,
    durability_within,
    is_on,
    is_within,
    run_quietly,
)
from daruma.state.channels import Input, State, state_of

# --- It is off where it was switched off, and where nobody has tried it.


def test_it_is_on_unless_it_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says so of itself: what is installed is what it was tested with."""
    assert is_on()
    monkeypatch.setenv(SWITCH, "0")
    assert not is_on()


@pytest.mark.parametrize(
    "tested", [{"langgraph": ("0.9.",)}, {"langgraph": ("1.",), "langchain-core": ("0.3.",)}]
)
def test_it_is_off_on_an_engine_that_it_was_not_tested_with(
    tested: dict[str, tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Private API may have changed there."""
    monkeypatch.setattr(fast_path, "TESTED_WITH", tested)
    fast_path._is_tested.cache_clear()
    off = not is_on()
    fast_path._is_tested.cache_clear()

    assert off


# --- A run as part of another graph's (FA-08).

WITHIN: Any = {"__pregel_checkpointer": memory(), "checkpoint_ns": "daruma:1"}


@pytest.mark.parametrize(
    ("given", "within", "durability"),
    [
        (WITHIN, True, "sync"),
        (WITHIN | {"__pregel_durability": "exit"}, True, "exit"),
        (WITHIN | {"__pregel_checkpointer": None}, True, None),
        ({"checkpoint_ns": "member:1", "thread_id": "t"}, False, None),
        ({"__pregel_checkpointer": memory(), "checkpoint_ns": "", "thread_id": "t"}, False, "sync"),
        ({}, False, None),
    ],
)
def test_what_another_graph_says_of_a_run(
    given: Any,
    within: bool,
    durability: str | None,
) -> None:
    """FA-08: each step is kept before the next, unless that graph's own run asks for less."""
    assert is_within({"configurable": given}) == within
    assert durability_within({"configurable": given}) == durability


# --- Where a run goes after a node: its route reads what the node left, at no cost for the rest.


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

        builder: Any = StateGraph(Channels)
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


async def test_a_state_may_be_written_from_outside() -> None:
    """Whether somebody listens or not; also in a form of LangGraph's that no node of ours has."""
    walk, tracer = Walk({"continuity": {"status": "fresh"}}), Tracer()
    graph = walk.graph(checkpointer=memory())
    at: Any = {"configurable": {"thread_id": "t"}}

    await graph.aupdate_state(at, walk.update, as_node="work")
    await graph.aupdate_state({**at, "callbacks": [tracer]}, walk.update, as_node="work")
    await graph.aupdate_state(at, {"messages": Overwrite([("user", "anew")])}, as_node="work")

    assert [state.continuity for state in walk.seen] == [{"status": "fresh"}] * 3
    assert [len(state.messages) for state in walk.seen] == [0, 0, 1]


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


# --- A node's run: told to those who listen, and no work for the event loop where nobody does.


class Listener(BaseCallbackHandler):
    """Keeps what it is told of runs, but for ids."""

    def __init__(self) -> None:
        self.chains: list[str] = []
        self.ends = 0
        self.models: list[tuple[Any, ...]] = []

    @override
    def on_chain_start(self, *_: Any, **given: Any) -> None:
        self.chains.append(given["name"])

    @override
    def on_chain_end(self, *_: Any, **given: Any) -> None:
        self.ends += 1

    @override
    def on_chat_model_start(self, *_: Any, **given: Any) -> None:
        metadata = {k: v for k, v in given["metadata"].items() if not k.endswith("_ns")}
        self.models.append((given["name"], sorted(given["tags"]), metadata))


def graph_of(node: Any, *, quiet: bool = True) -> Any:
    builder: Any = StateGraph(Channels)
    builder.add_node("work", node).add_edge(START, "work").add_edge("work", END)
    compiled = builder.compile()
    if quiet:
        run_quietly(compiled, ["work"])
    return compiled


async def leave(_: State) -> dict[str, Any]:
    return {"continuity": {"status": "fresh"}}


async def tasks_of(work: Coroutine[Any, Any, Any]) -> int:
    """Return how many tasks some work makes."""
    made: list[Any] = []

    def counting(loop: Any, coroutine: Any, **given: Any) -> Any:
        made.append(coroutine)
        return asyncio.Task(coroutine, loop=loop, **given)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(counting)
    try:
        await work
    finally:
        loop.set_task_factory(None)
    return len(made)


async def test_a_node_makes_no_task() -> None:
    """Neither for itself nor to tell nobody of its end; LangGraph's own makes both."""
    quiet = await tasks_of(graph_of(leave).ainvoke({}))
    stock = await tasks_of(graph_of(leave, quiet=False).ainvoke({}))

    assert stock - quiet == 2


def test_what_a_node_is_given_is_the_same_state() -> None:
    """Of nodes that are given the state; what others are given is LangGraph's to make."""
    builder: Any = StateGraph(Channels)
    builder.add_node("work", leave).add_edge(START, "work")
    builder.add_node("other", leave, input_schema=Input).add_edge("work", "other")
    stock, quiet = builder.compile(), builder.compile()
    run_quietly(quiet, ["work", "other"])

    (before, same), (after, other) = ((g.nodes["work"], g.nodes["other"]) for g in (stock, quiet))
    assert after.mapper is state_of
    assert after.mapper({"continuity": {}}) == before.mapper({"continuity": {}})
    assert other.mapper == same.mapper


async def test_a_node_runs_under_its_config() -> None:
    """What it calls is told where it is called from, and has a name of its own."""
    seen: list[Any] = []

    async def look(_: State, config: RunnableConfig) -> dict[str, Any]:
        seen.extend((config, var_child_runnable_config.get()))
        return {}

    graph = graph_of(look)
    await graph.ainvoke({})

    for config in seen:
        assert config["metadata"]["langgraph_node"] == "work"
        assert not {"run_name", "run_id"} & config.keys()
    assert var_child_runnable_config.get() is None


async def test_who_listens_is_told_of_a_node() -> None:
    """Of its beginning and of its end."""
    heard, stock = Listener(), Listener()
    for listener, quiet in ((heard, True), (stock, False)):
        graph, config = graph_of(leave, quiet=quiet), RunnableConfig(callbacks=[listener])
        await graph.ainvoke({}, config)

    assert "work" in heard.chains
    assert (heard.chains, heard.ends) == (stock.chains, stock.ends)


async def test_a_models_own_listener_is_told_the_same() -> None:
    """It belongs to no run, and hears of a request from within a node that nobody hears of."""
    heard, stock = Listener(), Listener()
    for listener, quiet in ((heard, True), (stock, False)):
        model = FakeListChatModel(responses=["yes"], callbacks=[listener])

        async def ask(_: State, model: Any = model) -> dict[str, Any]:
            await model.ainvoke("well?")
            return {}

        await graph_of(ask, quiet=quiet).ainvoke({}, {"tags": ["mine"]})

    assert heard.models == stock.models
    assert "mine" in heard.models[0][1]


async def test_what_a_node_raises_is_raised() -> None:
    """There is nobody to tell before."""

    async def fail(_: State) -> None:
        raise LookupError("lost")

    graph = graph_of(fail)
    with pytest.raises(LookupError, match="lost"):
        await graph.ainvoke({})
