"""Failures that leave the machine, and the tiers behind a failure (EM-05)."""

import asyncio
import gc
import re
import weakref
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import pytest
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command
from tests.parts import a_context, a_failure, a_state, memory, settings
from tests.raising_model import RaisingModel
from tests.scripted_runs import Run, calls, illegal, say, shout

from daruma.graph import errors
from daruma.graph.build import build_graph, builder
from daruma.graph.errors import Failures, run_node
from daruma.graph.models import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.graph.scope import (
    Contexts,
)
from daruma.graph.sync import run
from daruma.state.channels import Update
from daruma.state.errors import CutOff, DarumaError, HoldLost, StorageUnavailable
from daruma.state.failure import ModelFailed, TaskFailed
from daruma.state.settings import Settings, Tools
from daruma.tools.calls import Registry, Tool
from daruma.tools.calls._tool import Toolset

# --- What leaves the machine: cancellations always, exceptions as they were.

HELLO: Any = {"messages": [("user", "Hello")]}
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class CancellingOnce(Registry):
    """A live thing that a node uses, and whose own work is cancelled the first time."""

    cancelled = False

    def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
        if not self.cancelled:
            self.cancelled = True
            raise asyncio.CancelledError
        return super().visible(settings, usable)


def cancelled_in_main() -> Any:
    contexts = Contexts(ScriptedChatModel(script=[say()]), CancellingOnce((), [shout]), Settings())
    compiled = builder(contexts).compile(checkpointer=memory())
    return Machine.of(compiled, Settings(), contexts.check)


def test_a_cancellation_within_a_node_is_one_for_the_caller() -> None:
    """EM-02: it is never classified, and the thread can be gone on with."""
    graph = cancelled_in_main()

    with pytest.raises(asyncio.CancelledError):
        graph.invoke(HELLO, CONFIG)

    assert graph.get_state(CONFIG).next == ("main",)
    assert graph.invoke(None, CONFIG)["result"].completed


async def test_a_cancellation_within_a_node_is_one_for_an_awaiting_caller() -> None:
    """EM-02 and MO-09."""
    graph = cancelled_in_main()

    with pytest.raises(asyncio.CancelledError):
        await graph.ainvoke(HELLO, CONFIG)

    assert (await graph.ainvoke(None, CONFIG))["result"].completed


def test_a_tool_that_cancels_itself_has_failed_and_nothing_else() -> None:
    """TL-21: its own work was called off, not the task; the model is told."""

    async def give_up(text: str) -> str:
        """Begin and give up."""
        raise asyncio.CancelledError(text)

    run = Run([calls("give_up"), say()], tools=[give_up]).ask()

    assert run.result.completed
    (told,) = (m for m in run.messages if m.type == "tool")
    assert "give_up was cancelled from within" in told.text
    assert illegal(run.messages) == []


async def test_a_caller_that_is_cancelled_leaves_a_thread_to_go_on_with() -> None:
    """EM-02: what was under way is called off, and done again if it has not taken effect."""
    reached = asyncio.Event()
    begun: list[str] = []

    async def hang(text: str) -> str:
        """Take for ever, the first time."""
        begun.append(text)
        reached.set()
        if len(begun) == 1:
            await asyncio.Event().wait()
        return "at last"

    graph = Run([calls("hang"), say()], tools=[hang]).graph
    task = asyncio.create_task(graph.ainvoke(HELLO, CONFIG))
    await reached.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task

    assert (await graph.aget_state(CONFIG)).next == ("tool",)
    (question,) = (await graph.ainvoke(None, CONFIG))["__interrupt__"]
    again: Any = Command(resume={question.id: {"answer": "again"}})
    assert (await graph.ainvoke(again, CONFIG))["result"].completed
    assert begun == ["hello", "hello"]


async def test_a_node_that_is_called_off_is_cancelled_as_any_coroutine() -> None:
    """EM-02: who asked for it is heard; only a node's own cancellation needs a way out."""

    async def hang(_: object, __: object) -> Update:
        await asyncio.Event().wait()
        return {}

    task = asyncio.create_task(run_node(hang, a_state(), a_context(), Failures()))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_failure_is_told_by_what_was_raised() -> None:
    """EM-04: of equal failures by the first; by a provider's own exception, where there is one.

    Of a long run the newest are kept.
    """
    raised, own, ours = Failures(), ValueError("own"), ModelFailed("x", cause="ValueError")
    ours.__cause__ = own
    first = ValueError("first")
    for message, error in (("x", ours), ("y", first), ("y", ValueError("second"))):
        raised.note(a_failure(message=message), error)

    assert raised.exception_for(a_failure(message="x")) is own
    assert raised.exception_for(a_failure(message="y")) is first
    assert isinstance(raised.exception_for(a_failure(message="other")), TaskFailed)
    for number in range(100):
        raised.note(a_failure(message=str(number)), ValueError(number))
    assert isinstance(raised.exception_for(a_failure(message="0")), TaskFailed)
    assert isinstance(raised.exception_for(a_failure(message="99")), ValueError)


class Held(ValueError):
    """Other than a built-in one it can be watched."""


def test_what_a_run_raised_is_let_go_of_at_its_end() -> None:
    """An exception holds all that was under way; nobody has to collect it in a circle."""
    raised, error = Failures(), Held("end")
    known = weakref.ref(error)
    raised.note(a_failure(), error)
    raised.end = error
    del error
    gc.disable()
    with suppress(Held):
        raised.raise_end()
    left = known()
    gc.enable()

    assert left is None
    assert isinstance(raised.exception_for(a_failure()), TaskFailed)


def test_what_a_run_raised_is_neither_stored_nor_shown() -> None:
    """It is live: a debugger's stream and a checkpoint have to be JSON."""
    run = Run([say()])
    parts = list(run.graph.stream(HELLO, run.config, stream_mode="debug"))
    (state, *_) = run.graph.get_state_history(run.config)

    assert "raised" not in str([part["payload"].get("config") for part in parts])
    assert "raised" not in str(state.metadata) + str(state.config)


# --- Where recovery, emergency or the whole chain is off, a failure comes out as what it was.

NO_CHAIN = settings(fallback_chain={"enabled": False})
NO_EMERGENCY = settings(
    fallback_chain={"recovery": {"enabled": False}, "emergency": {"enabled": False}}
)
ONLY_RECOVERY = settings(fallback_chain={"emergency": {"enabled": False}})


class Down(RuntimeError):
    """The provider's own exception."""


def down(text: str = "the provider is down") -> Down:
    """An exception with a cause of its own; of a kind that no request is repeated for."""
    try:
        raise Down(text) from LookupError("a broken client")
    except Down as error:
        return error


def invoked(graph: Any, **options: Any) -> None:
    graph.invoke(HELLO, CONFIG, **options)


def streamed(graph: Any, **options: Any) -> None:
    list(graph.stream(HELLO, CONFIG, stream_mode=["updates", "messages"], **options))


def ainvoked(graph: Any, **options: Any) -> None:
    asyncio.run(graph.ainvoke(HELLO, CONFIG, **options))


def astreamed(graph: Any, **options: Any) -> None:
    async def all_parts() -> None:
        async for _ in graph.astream(HELLO, CONFIG, stream_mode=["updates"], **options):
            pass

    asyncio.run(all_parts())


WAYS = pytest.mark.parametrize("way", [invoked, streamed, ainvoked, astreamed])


def graph_with(given: Settings, *errors: BaseException, tools: Any = (shout,)) -> Any:
    return build_graph(RaisingModel(*errors), tools, given, checkpointer=memory())


@WAYS
@pytest.mark.parametrize("given", [NO_CHAIN, NO_EMERGENCY])
def test_the_providers_own_exception_comes_out(given: Settings, way: Callable[..., None]) -> None:
    """EM-05 and MO-09: the very object, with its cause and nothing of ours in its chain."""
    error = down()

    with pytest.raises(Down) as raised:
        way(graph_with(given, error, error))

    assert raised.value is error
    assert isinstance(raised.value.__cause__, LookupError)
    assert raised.value.__context__ is None


@WAYS
def test_without_the_chain_going_on_runs_the_node_again(way: Callable[..., None]) -> None:
    """EM-05: as in any graph of LangGraph; the thread has lost nothing."""
    graph = graph_with(NO_CHAIN, down())
    with pytest.raises(Down):
        way(graph)

    assert graph.get_state(CONFIG).next == ("main",)
    assert graph.invoke(None, CONFIG)["result"].completed


class Unwritten(Registry):
    """A live thing that a node uses, whose storage is gone for the first two times."""

    def __init__(self, error: CutOff) -> None:
        super().__init__((), [shout])
        self.errors = [error, error]

    def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
        if self.errors:
            raise self.errors.pop()
        return super().visible(settings, usable)


@WAYS
@pytest.mark.parametrize("error", [StorageUnavailable("gone"), HoldLost("t")])
def test_a_run_that_is_cut_off_from_its_storage_has_not_failed(
    error: CutOff, way: Callable[..., None]
) -> None:
    """DU-04: no recovery, no emergency, under any settings; it goes on with the same node."""
    contexts = Contexts(ScriptedChatModel(script=[say()]), Unwritten(error), Settings())
    compiled = builder(contexts).compile(checkpointer=memory())
    graph: Any = Machine.of(compiled, Settings(), contexts.check)

    with pytest.raises(type(error)) as raised:
        way(graph)

    assert raised.value is error
    state = graph.get_state(CONFIG)
    assert (state.next, state.values.get("failure")) == (("main",), None)
    with pytest.raises(type(error)):
        graph.invoke(None, CONFIG)
    assert graph.invoke(None, CONFIG)["result"].completed


def test_without_the_chain_nothing_is_recovered_from() -> None:
    """EM-05: neither recovery nor emergency has its say."""
    run = Run([{"raise": "down"}, say()], settings=NO_CHAIN)

    with pytest.raises(Exception, match="down"):
        run.ask()

    assert run.nodes == ["intake"]
    assert not run.happened("recovery_started")
    assert [e["error"] for e in run.happened("model_call_completed")] == ["down"]


def test_without_the_chain_a_blank_answer_is_raised_too() -> None:
    """EM-05: there is no exception to raise, so one that says what it was."""
    run = Run([say(" "), say()], settings=NO_CHAIN)

    with pytest.raises(TaskFailed, match="llm_failure in main: the model answered nothing"):
        run.ask()

    assert run.snapshot.next == ("main",)


def test_without_the_chain_a_bug_is_raised_as_it_is() -> None:
    """EM-05: not only what models raise."""

    class Broken(Registry):
        def visible(self, settings: Tools, usable: Collection[Toolset]) -> tuple[Tool, ...]:
            raise ZeroDivisionError(f"{usable} under {settings}")

    contexts = Contexts(RaisingModel(), Broken((), ()), NO_CHAIN)
    graph: Any = Machine.of(
        builder(contexts).compile(checkpointer=memory()), NO_CHAIN, contexts.check
    )

    with pytest.raises(ZeroDivisionError):
        graph.invoke(HELLO, CONFIG)

    assert graph.get_state(CONFIG).next == ("main",)


REQUIRED = {"policy": {"shout": {"decision": "confirm", "required": True}}}
LACKING = "the message is empty: say what is to be done"
OUT_OF_STEPS = "Stopped: exceeded budgets.max_steps (1)."


@pytest.mark.parametrize(
    ("given", "more", "script", "asked", "status", "message"),
    [
        (NO_CHAIN, {}, [say("Hello.")], " ", "failed", LACKING),
        (NO_EMERGENCY, {}, [say("Hello.")], " ", "failed", LACKING),
        (
            *(NO_EMERGENCY, {"budgets": {"max_steps": 1}}, [calls("shout"), say()]),
            *("Do it", "max_steps_exceeded", OUT_OF_STEPS),
        ),
        (NO_EMERGENCY, {}, [say(" "), say()], "Do it", "failed", None),
        (NO_CHAIN, {"tools": REQUIRED}, [calls("shout"), say()], "Do it", "blocked", None),
    ],
    ids=["empty", "empty, no emergency", "out of steps", "says nothing", "denied"],
)
def test_what_a_task_ends_with_by_rule_is_a_result(
    given: Settings, more: Any, script: Any, asked: str, status: str, message: str | None
) -> None:
    """EM-05, MO-08: it has raised nothing, so that its error has no structure; nor is it stuck."""
    given = Settings.model_validate(given.model_dump() | more)
    run = Run(script, settings=given, tools=[shout]).ask(asked)
    if status == "blocked":
        run.decide(call_main_0_0="deny")

    assert (run.result.status, run.result.error_struct) == (status, None)
    assert message in (None, run.result.error_message)
    assert "error_struct" not in run.result.to_dict()
    assert asked == "Do it" or run.ask("Hello").result.completed


def test_a_run_may_have_the_chain_of_its_own() -> None:
    """A run's settings count: they end a thread that a failure holds, and the other way about."""
    graph = graph_with(NO_CHAIN, *(down() for _ in range(9)))
    with pytest.raises(Down):
        graph.invoke(HELLO, CONFIG)
    ended = graph.invoke(None, CONFIG, context=settings())

    assert ended["result"].error_struct.error_code == "llm_failure"
    with pytest.raises(Down):
        graph_with(settings(), down()).invoke(HELLO, CONFIG, context=NO_CHAIN)


def test_without_emergency_the_task_has_ended_with_its_result() -> None:
    """EM-05: the thread is not stuck; what failed can be tried again, or another task begun."""
    graph = graph_with(NO_EMERGENCY, down(), down())
    with pytest.raises(Down):
        graph.invoke(HELLO, CONFIG)
    values = graph.get_state(CONFIG).values

    assert values["result"].status == "failed"
    assert values["result"].error_struct is None
    assert values["result"].error_message == "the provider is down"
    assert illegal(values["messages"]) == []
    with pytest.raises(Down):
        graph.invoke(None, graph.reopen(CONFIG))
    assert graph.invoke(None, graph.reopen(CONFIG))["result"].completed
    assert graph.invoke(HELLO, CONFIG)["result"].completed


@WAYS
def test_without_emergency_recovery_comes_first(way: Callable[..., None]) -> None:
    """EM-05: each tier has its own switch; EM-04: the first failure is what is raised."""
    errors = [down(f"down since {n} s") for n in range(9)]
    graph = graph_with(ONLY_RECOVERY, *errors)

    with pytest.raises(Down) as raised:
        way(graph)

    assert raised.value is errors[0]
    assert [step.kind for step in graph.get_state(CONFIG).values["steps"]].count("recover") == 1


def test_without_recovery_emergency_follows_at_once() -> None:
    """EM-05: and nothing says that a recovery had begun."""
    run = Run(
        [{"raise": "down"}], settings=settings(fallback_chain={"recovery": {"enabled": False}})
    )
    run.ask()

    assert run.result.error_struct is not None
    assert not any(event["type"].startswith("recovery") for event in run.events)


def test_another_process_raises_what_is_known_of_it() -> None:
    """EM-05: an exception does not outlive its process; its code and its words do."""
    graph = graph_with(NO_EMERGENCY, down())
    graph.invoke(HELLO, CONFIG, interrupt_before=["emergency"])
    other = build_graph(RaisingModel(), (), NO_EMERGENCY, checkpointer=graph.checkpointer)

    with pytest.raises(TaskFailed) as raised:
        other.invoke(None, CONFIG)

    assert raised.value.code == "llm_failure"
    assert str(raised.value) == "llm_failure in main: the provider is down"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("given", [NO_CHAIN, NO_EMERGENCY, settings()])
def test_no_exception_outlives_its_run(given: Settings) -> None:
    """EM-05: they are kept for as long as a run is under way, and no longer."""
    errors = [down("one"), down("two"), down("three")]
    known = [weakref.ref(error) for error in errors]
    graph = graph_with(given, *errors)
    del errors
    with suppress(Down):
        graph.invoke(HELLO, CONFIG)

    run(asyncio.sleep(0))  # the thread that ran it is done with it
    gc.collect()

    assert known[0]() is None
    assert graph.get_state(CONFIG).values["task"]


# --- The tree of errors, as the module draws it.


def test_the_tree_is_drawn_as_it_is() -> None:
    """Each name stands below a class that it is one of."""
    above: list[tuple[int, str]] = []
    drawn: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        if not (found := re.match(r"( {4}[ │├└─]*)((?:\w+, )*[A-Z]\w+)(?: |$)", line)):
            continue
        depth, names = len(found[1]), found[2].split(", ")
        above = [each for each in above if each[0] < depth]
        drawn |= dict.fromkeys(names, above[-1][1] if above else "")
        above.append((depth, names[0]))

    known = {each.__name__: each for each in (*_all_below(DarumaError), *_all_below(GraphBubbleUp))}
    known |= {"DarumaError": DarumaError, "GraphBubbleUp": GraphBubbleUp}
    assert len(drawn) > 20
    assert [n for n, up in drawn.items() if up and not issubclass(known[n], known[up])] == []


def _all_below(kind: type[BaseException]) -> list[type[BaseException]]:
    return [one for each in kind.__subclasses__() for one in (each, *_all_below(each))]
