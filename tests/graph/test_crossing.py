"""A synchronous run is asynchronous on the background loop, and its caller sees none of it."""

import threading
from collections.abc import Iterator
from contextvars import ContextVar
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
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from tests.in_time import in_time
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, calls, say, shout
from tests.waiting_saver import waiting
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.fast_path import alone, crosses
from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.graph.sync import run

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
    within: Any = {"configurable": {"__pregel_task_id": "1"}}

    assert seen == [True]
    assert not crosses(None, within)
    assert not crosses(True, {})


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
