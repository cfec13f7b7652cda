"""A node's run: told to those who listen, and no work for the event loop where nobody does."""

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._runnable import RunnableCallable, RunnableSeq
from langgraph.graph import END, START, StateGraph
from typing_extensions import override

from daruma.graph.fast_path import NodeRun, run_quietly
from daruma.graph.sync import async_node
from daruma.state.channels import Input, State, state_of

LEFT: ContextVar[str] = ContextVar("test_left", default="nothing")


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
    builder: Any = StateGraph(State)
    builder.add_node("work", async_node(node)).add_edge(START, "work").add_edge("work", END)
    compiled = builder.compile()
    if quiet:
        run_quietly(compiled, ["work"])
    return compiled


async def leave(_: State) -> dict[str, Any]:
    LEFT.set("work")
    return {"continuity": {"status": "fresh"}}


class Adding(Runnable[Any, Any]):
    """A step of a sequence that is none of LangGraph's own writers."""

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return [*input, "more"]


def more(_: Any) -> Adding:
    """Return what is to be run in its place."""
    return Adding()


def more_of(_: Any, config: RunnableConfig) -> Runnable[Any, Any] | None:
    """Do the same, where it was told where it is written from."""
    return Adding() if "from" in config["metadata"] else None


def stated(given: list[str], config: RunnableConfig) -> list[str]:
    """Say where it is written from."""
    return [*given, str(config["metadata"]["from"])]


@pytest.mark.parametrize(
    "writer",
    [
        Adding(),
        RunnableCallable(stated, trace=False),
        RunnableCallable(stated),
        RunnableCallable(more, trace=False),
        RunnableCallable(more_of, trace=False),
    ],
)
@pytest.mark.parametrize("face", ["sync", "async"])
async def test_whatever_writes_what_a_node_returned_does_what_it_does(
    face: str, writer: Any
) -> None:
    """Our own graph's writers are called by themselves; others are run as ever."""
    config = RunnableConfig(
        metadata={"from": "work"}, callbacks=CallbackManager([]), configurable={}
    )
    steps = RunnableCallable(lambda given: [given], trace=False), writer
    quiet, stock = NodeRun(*steps), RunnableSeq(*steps)
    ran = await quiet.ainvoke("a", config) if face == "async" else quiet.invoke("a", config)

    assert ran == stock.invoke("a", config)
    assert len(ran) == 2


def apart(word: str, *, times: int, config: RunnableConfig) -> str:
    """Take what was returned as arguments of its own."""
    return word * times + str(config["metadata"]["from"])


def test_a_writer_that_takes_what_was_returned_apart_does_so() -> None:
    """LangGraph has a way to say it."""
    config = RunnableConfig(metadata={"from": "!"}, callbacks=CallbackManager([]), configurable={})
    returned = RunnableCallable(lambda word: ((word,), {"times": 2}), trace=False)

    quiet = NodeRun(returned, RunnableCallable(apart, trace=False, explode_args=True))

    assert quiet.invoke("a", config) == "aa!"


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
    builder: Any = StateGraph(State)
    builder.add_node("work", leave).add_edge(START, "work")
    builder.add_node("other", leave, input_schema=Input).add_edge("work", "other")
    stock, quiet = builder.compile(), builder.compile()
    run_quietly(quiet, ["work", "other"])

    (before, same), (after, other) = ((g.nodes["work"], g.nodes["other"]) for g in (stock, quiet))
    assert after.mapper is state_of
    assert after.mapper({"continuity": {}}) == before.mapper({"continuity": {}})
    assert other.mapper == same.mapper


async def test_what_a_node_sets_stays_with_it() -> None:
    """Context variables are the run's that is called, not the caller's."""
    await graph_of(leave).ainvoke({})
    graph_of(leave).invoke({})

    assert LEFT.get() == "nothing"


@pytest.mark.parametrize("face", ["sync", "async"])
async def test_a_node_runs_under_its_config(face: str) -> None:
    """What it calls is told where it is called from, and has a name of its own."""
    seen: list[Any] = []

    async def look(_: State, config: RunnableConfig) -> dict[str, Any]:
        seen.extend((config, var_child_runnable_config.get()))
        return {}

    graph = graph_of(look)
    await (graph.ainvoke({}) if face == "async" else asyncio.to_thread(graph.invoke, {}))

    for config in seen:
        assert config["metadata"]["langgraph_node"] == "work"
        assert not {"run_name", "run_id"} & config.keys()
    assert var_child_runnable_config.get() is None


@pytest.mark.parametrize("face", ["sync", "async"])
async def test_who_listens_is_told_of_a_node(face: str) -> None:
    """Of its beginning and of its end."""
    heard, stock = Listener(), Listener()
    for listener, quiet in ((heard, True), (stock, False)):
        graph, config = graph_of(leave, quiet=quiet), RunnableConfig(callbacks=[listener])
        if face == "async":
            await graph.ainvoke({}, config)
        else:
            graph.invoke({}, config)

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


@pytest.mark.parametrize("face", ["sync", "async"])
async def test_what_a_node_raises_is_raised(face: str) -> None:
    """There is nobody to tell before."""

    async def fail(_: State) -> None:
        raise LookupError("lost")

    graph = graph_of(fail)
    with pytest.raises(LookupError, match="lost"):
        await (graph.ainvoke({}) if face == "async" else asyncio.to_thread(graph.invoke, {}))
