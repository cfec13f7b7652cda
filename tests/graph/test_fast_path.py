"""What goes round LangGraph's engine, and what it buys."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    CallbackManager,
    UsageMetadataCallbackHandler,
    get_usage_metadata_callback,
)
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.channels import LastValue
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import ExecutionInfo, Runtime, get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Overwrite, Send
from tests.in_time import in_time
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, call, calls, say, shout
from tests.waiting_saver import waiting
from typing_extensions import TypedDict, override

from daruma.graph.build import build_graph
from daruma.graph.fast_path import (
    QuickRuntime,
    Within,
    add_branch,
    alone,
    crosses,
    durability_within,
    is_within,
    quickly,
    run_quietly,
)
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.sync import run
from daruma.state.channels import State

# --- Work in a context of its own: seen from outside as a task, from the event loop as a call.

NAME: ContextVar[str] = ContextVar("test_name", default="nobody")


async def test_what_the_work_sets_stays_with_it() -> None:
    """It sees what was set before, and nobody sees what it sets: also after it has waited."""
    seen: list[str] = []

    async def work() -> str:
        seen.append(NAME.get())
        NAME.set("work")
        await asyncio.sleep(0)
        seen.append(NAME.get())
        return "done"

    NAME.set("caller")
    said = await Within(copy_context(), work())

    assert said == "done"
    assert seen == ["caller", "work"]
    assert NAME.get() == "caller"


async def test_it_is_the_callers_task() -> None:
    """There is none of its own to begin, to end and to wait for."""

    async def work() -> object:
        await asyncio.sleep(0)
        return asyncio.current_task()

    assert await Within(copy_context(), work()) is asyncio.current_task()


async def test_an_error_is_raised_and_not_kept() -> None:
    """A cycle would hold all that the work had, until somebody collects it."""

    class Large(Exception):
        pass

    def failing() -> "asyncio.Future[None]":
        end = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(end.set_exception, Large())
        return end

    async def work() -> None:
        await failing()

    gc.disable()
    try:
        try:
            await Within(copy_context(), work())
        except Large as error:
            kept = weakref.ref(error)
        await asyncio.sleep(0)  # the event loop lets go of it
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("swallowed", [True, False])
async def test_a_cancellation_reaches_the_work(swallowed: bool) -> None:
    """Which may clean up, in its own context, and even go on."""
    seen: list[str] = []

    async def work() -> str:
        NAME.set("work")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append(NAME.get())
            if not swallowed:
                raise
        return "went on"

    async def call() -> str:
        return await Within(copy_context(), work())

    task = asyncio.create_task(call())
    await asyncio.sleep(0)
    task.cancel()
    (said,) = await asyncio.gather(task, return_exceptions=True)

    assert seen == ["work"]
    assert said == "went on" if swallowed else isinstance(said, asyncio.CancelledError)


async def test_work_that_is_left_behind_is_closed() -> None:
    """As any coroutine is that nobody waits for any more."""
    closed: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def call() -> None:
        await Within(copy_context(), work())

    left = call()
    left.send(None)
    left.close()

    assert closed == [True]


# --- A synchronous run is asynchronous on the background loop, and its caller sees none of it.

HELLO: Any = {"messages": [("user", "Hello")]}
CONFIG: Any = {"configurable": {"thread_id": "t"}}
CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody")


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Postgres]:
    with open_postgres(postgres_url) as opened:
        yield opened


class Heard(BaseCallbackHandler):
    """Keeps what it is told, below what, and in which thread."""

    run_inline = True

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        self.threads: set[str] = set()
        self._names: dict[Any, str] = {}

    def _note(self, kind: str, name: str, given: dict[str, Any]) -> None:
        if kind in {"begins", "ends"}:  # a tool may have a thread of its own
            self.threads.add(threading.current_thread().name)
        self._names.setdefault(given["run_id"], name)
        above = self._names.get(given.get("parent_run_id"), "")
        self.told.append((kind, self._names[given["run_id"]], above))

    @override
    def on_chain_start(self, *_: Any, **given: Any) -> None:
        self._note("begins", given.get("name") or "", given)

    @override
    def on_chain_end(self, *_: Any, **given: Any) -> None:
        self._note("ends", "", given)

    @override
    def on_chat_model_start(self, *_: Any, **given: Any) -> None:
        self._note("asks", "model", given)

    @override
    def on_tool_start(self, serialized: Any, *_: Any, **given: Any) -> None:
        self._note("calls", serialized["name"], given)


class Blocked(Heard):
    """Hears the same where it was called only."""

    run_inline = False


def machine(script: Any, *tools: Any, saver: Any = None) -> Any:
    model = RecordingModel(script=script)
    return build_graph(model, tools, settings(), checkpointer=saver or memory())


def heard(saver: Any) -> Heard:
    ear = Heard()
    graph = machine([calls("shout"), say()], shout, saver=saver)
    graph.invoke(HELLO, {**CONFIG, "callbacks": [ear]})
    return ear


def test_a_run_is_on_the_background_loop_as_a_whole(postgres: Postgres) -> None:
    """Its nodes would be there anyway; here the graph around them is, with all three."""
    seen = [heard(saver).threads for saver in (memory(), postgres.checkpointer)]
    ear = Heard()
    build_graph(RecordingModel(script=[say()]), settings=settings()).invoke(
        HELLO, {"callbacks": [ear]}
    )

    assert [*seen, ear.threads] == [{"daruma"}] * 3


def test_any_other_checkpointer_is_called_as_it_always_was() -> None:
    """It may have no asynchronous methods, or belong to a loop of its own."""
    graph = machine([calls("shout"), say(), say()], shout, saver=waiting())

    parts = list(graph.stream(HELLO, CONFIG, stream_mode="values"))
    out = graph.invoke(HELLO, CONFIG)

    assert parts[-1]["result"].completed
    assert out["result"].completed


def test_handlers_are_told_the_same_in_the_same_order() -> None:
    """Which run is below which does not depend on the loop either."""
    here, there = heard(waiting()), heard(memory())

    assert there.told == here.told
    assert ("calls", "shout", "tool") in there.told


def test_the_callers_context_is_seen_in_tools() -> None:
    """It holds who asks, what is traced, and the like."""
    seen = []

    def look(text: str) -> str:
        """Look."""
        seen.append((text, CALLER.get()))
        return text

    graph = machine([calls("look"), say()], look)
    token = CALLER.set("me")
    graph.invoke(HELLO, CONFIG)
    CALLER.reset(token)

    assert [who for _, who in seen] == ["me"]


def test_a_synchronous_call_that_could_never_end_is_refused() -> None:
    """On the background loop itself, whatever it would be kept in."""
    for saver in (memory(), waiting()):
        graph = machine([say()], saver=saver)

        async def invoke(graph: Any = graph) -> None:
            graph.invoke(HELLO, CONFIG)

        with pytest.raises(RuntimeError, match="own event loop"):
            in_time(partial(run, invoke()))


def test_a_tool_may_run_another_graph(postgres: Postgres) -> None:
    """In the tool's thread, while the run that it is called in waits for it."""
    inner = build_graph(RecordingModel(script=[say("Within.")]), (), settings(), postgres)

    def ask(text: str) -> str:
        """Ask another."""
        given: Any = {"messages": [("user", text)]}
        return str(inner.invoke(given, {"configurable": {"thread_id": "inner"}})["result"].output)

    model = RecordingModel(script=[calls("ask"), say()])
    out: Any = build_graph(model, [ask], settings(), postgres).invoke(HELLO, CONFIG)

    assert [m.text for m in out["messages"] if m.type == "tool"] == ["Within."]


def test_a_run_within_another_graphs_stays_with_that() -> None:
    """The outer one's checkpointer is not known to work anywhere; one in a chain is on its own."""
    seen: list[bool] = []
    chained: Any = RunnableLambda(lambda _: seen.append(crosses(None, {})))
    chained.invoke("")
    within: Any = {"configurable": {"__pregel_checkpointer": None, "checkpoint_ns": "daruma:1"}}

    assert seen == [True]
    assert not crosses(None, within)
    assert not crosses(True, {})


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


def test_a_graph_of_langgraphs_keeps_ours_on_its_own_loop_and_checkpointer() -> None:
    """As a node it inherits what the outer one writes with, a run in a node is within it too."""
    ear, seen = Heard(), []
    inner = build_graph(RecordingModel(script=[say(), say()]), settings=settings())

    def look(_: Any) -> dict[str, Any]:
        seen.append(inner.invoke(HELLO)["result"].completed)
        return {}

    outer: Any = StateGraph(MessagesState)
    outer.add_sequence([("look", look), ("ours", inner)]).add_edge(START, "look")
    graph = outer.compile(checkpointer=waiting())
    graph.invoke(HELLO, {**CONFIG, "callbacks": [ear]})

    assert seen == [True]
    assert ear.threads == {threading.current_thread().name}


class Blocking(BaseCallbackHandler):
    """Has not said that it may be told on any thread."""


class Awaited(AsyncCallbackHandler):
    """Is told on a loop, whichever."""


@pytest.mark.parametrize(
    ("callbacks", "carried_over"),
    [
        ([], True),
        ([Awaited()], True),
        ([Heard()], True),
        ([Blocking()], False),
        ([Heard(), Awaited(), Blocking()], False),
        (CallbackManager([Heard()]), True),
        (CallbackManager([Blocking()]), False),
        (CallbackManager([], inheritable_handlers=[Blocking()]), False),
        ([UsageMetadataCallbackHandler()], False),
    ],
)
def test_who_may_be_told_on_another_thread(callbacks: Any, carried_over: bool) -> None:
    """A manager's are told of the run itself, or of its nodes, or of both."""
    assert crosses(None, {"callbacks": callbacks}) == carried_over


def test_who_is_told_of_all_that_runs_counts_too() -> None:
    """Those of the caller's context, and those that a graph was bound with."""
    with get_usage_metadata_callback():
        within = crosses(None, {})
    bound = machine([say()]).with_config({"callbacks": [ear := Blocked()]})
    bound.invoke(HELLO, CONFIG)

    assert not within
    assert crosses(None, {})
    assert ear.threads == {threading.current_thread().name}


def test_a_blocking_handler_is_told_of_nodes_where_it_was_called() -> None:
    """A window or a page belongs to one thread; by invoke and by stream."""
    ear = Blocked()
    graph = machine([calls("shout"), say()] * 2, shout)
    config: Any = {**CONFIG, "callbacks": [ear]}
    graph.invoke(HELLO, config)
    list(graph.stream(HELLO, config, stream_mode="values"))

    assert ear.threads == {threading.current_thread().name}


def test_one_of_several_crosses() -> None:
    """The others run as they ever did, each on its caller's thread: that is faster in a crowd."""
    graph, ears = machine([say(), say(), say()]), [Heard(), Heard()]
    with alone() as first, alone() as second:
        graph.invoke(HELLO, {**CONFIG, "callbacks": [ears[0]]})
    graph.invoke(HELLO, {**CONFIG, "callbacks": [ears[1]]})

    assert (first, second) == (True, False)
    assert [ear.threads for ear in ears] == [{threading.current_thread().name}, {"daruma"}]


# --- What a task is told of its run is what LangGraph would tell it.

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
