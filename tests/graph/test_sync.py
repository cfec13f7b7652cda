"""One loop for callers of all kinds: bridge, background loops, Ctrl-C."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import add
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.pregel._utils import find_subgraph_pregel
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt
from tests.parts import memory
from tests.scripted_runs import call, calls, say, shout
from tests.waiting_saver import waiting
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import aopen_postgres
from daruma.graph.sync import LeftBehind, async_node, background_loop, on, run
from daruma.state.settings import Settings

# --- One async function serves every kind of caller; cancelling crosses in both directions.

CALLER: ContextVar[str] = ContextVar("CALLER", default="nobody")


async def test_a_waiting_thread_gets_the_result_even_inside_a_running_loop() -> None:
    """A notebook's loop is running while its cells call synchronous functions."""

    async def answer() -> int:
        assert asyncio.get_running_loop() is background_loop()
        return 42

    assert run(answer()) == 42


def test_the_coroutine_sees_the_callers_context() -> None:
    """Callbacks, configuration and tracing of LangGraph travel in context variables."""

    async def caller() -> str:
        return CALLER.get()

    CALLER.set("me")

    assert run(caller()) == "me"


def test_a_wait_that_could_never_end_is_an_error() -> None:
    """Waiting on the background loop's own thread is refused, and leaves no coroutine behind."""

    async def inner() -> None: ...

    async def outer() -> None:
        run(inner())

    with pytest.raises(RuntimeError, match="own event loop"):
        run(outer())


def test_a_loop_that_is_closed_is_told_of_with_what_to_do() -> None:
    """As of a graph made in one ``asyncio.run`` and used in another; nothing is left unawaited."""

    async def nothing() -> None: ...

    closed = asyncio.new_event_loop()
    closed.close()

    with pytest.raises(LeftBehind, match=r"event loop.*has ended.*one asyncio\.run"):
        run(nothing(), loop=closed)
    with pytest.raises(LeftBehind, match=r"event loop.*has ended.*one asyncio\.run"):
        asyncio.run(on(closed, nothing()))


def test_errors_keep_their_type_up_to_system_exit_and_the_loop_lives_on() -> None:
    """What a coroutine raises belongs to its caller alone."""

    async def fail(error: BaseException) -> None:
        raise error

    for error in (ValueError(), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            run(fail(error))


def test_an_interrupted_wait_cancels_and_waits_for_the_clean_up() -> None:
    """Ctrl-C must not leave a command or a connection behind."""
    steps: list[str] = []

    async def work() -> None:
        try:
            signal.pthread_kill(main, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    main = threading.main_thread().ident or 0
    with pytest.raises(KeyboardInterrupt):
        run(work())

    assert steps == ["cleaned up"]


async def test_a_cancelled_caller_on_another_loop_cancels_and_waits_for_the_clean_up() -> None:
    """A node that is cancelled while it awaits storage leaves nothing half done."""
    started, steps = asyncio.Event(), list[str]()
    here = asyncio.get_running_loop()

    async def work() -> None:
        try:
            here.call_soon_threadsafe(started.set)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    caller = asyncio.create_task(on(background_loop(), work()))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    assert steps == ["cleaned up"]


async def test_a_cancelled_caller_is_cancelled_even_if_the_coroutine_has_just_ended() -> None:
    """The end and the cancelling may cross on their way; the cancelling is not lost."""
    started, here = asyncio.Event(), asyncio.get_running_loop()

    async def end_anyway() -> str:
        with suppress(asyncio.CancelledError):
            here.call_soon_threadsafe(started.set)
            await asyncio.Event().wait()
        return "done"

    caller = asyncio.create_task(on(background_loop(), end_anyway()))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_a_cancelled_coroutine_cancels_its_caller_on_another_loop() -> None:
    """The other direction: who cancels at home is heard by who waits."""

    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await on(background_loop(), give_up())


async def test_on_the_right_loop_nothing_is_crossed() -> None:
    """Awaiting at home stays in the same task, so that timeouts and groups work as ever."""

    async def task() -> asyncio.Task[Any] | None:
        return asyncio.current_task()

    assert await on(asyncio.get_running_loop(), task()) is asyncio.current_task()


def test_many_threads_share_one_loop_and_do_not_wait_for_each_other() -> None:
    """Eight callers meet inside their coroutines, which only works when all run at once."""
    meeting = run(_barrier(8))

    async def meet() -> int:
        await asyncio.wait_for(meeting.wait(), 30)
        return threading.get_ident()

    with ThreadPoolExecutor(8) as threads:
        seen = list(threads.map(lambda _: run(meet()), range(8)))

    assert len(set(seen)) == 1


async def _barrier(parties: int) -> asyncio.Barrier:
    return asyncio.Barrier(parties)


@pytest.mark.parametrize(
    "leave",
    [
        "background_loop().call_soon_threadsafe(leave)",
        "threading.Thread(target=run, args=[work()], daemon=True).start()",
        "run(leave_a_task())",
    ],
)
def test_the_interpreter_ends_cleanly_with_work_under_way(leave: str) -> None:
    """No hang, no warning, and the work gets to clean up."""
    program = f"""
import asyncio, threading
from daruma.graph.sync import background_loop
from daruma.graph.sync import run

started, kept = threading.Event(), []

async def work():
    try:
        started.set()
        await asyncio.Event().wait()
    finally:
        print("cleaned up")

async def leave_a_task():
    kept.append(asyncio.create_task(work()))

def leave():  # the loop itself holds no task: one that nobody keeps is collected at any time
    kept.append(background_loop().create_task(work()))

threading.excepthook = lambda _: None
{leave}
started.wait()
"""
    command = [sys.executable, "-W", "error", "-c", program]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    assert (ended.stdout, ended.stderr) == ("cleaned up\n", "")


# --- A graph of async functions takes the same path however it is called (MO-09).


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


# --- Ctrl-C ends a synchronous run at once, whatever its nodes are at, and the thread goes on.

CONFIG: Any = {"configurable": {"thread_id": "t"}}
REQUEST: Any = {"messages": [("user", "Do it")]}


class Button:
    """A tool that stops the run it is called in, the first time."""

    def __init__(self) -> None:
        self.pressed = 0
        self.cancelled = 0
        self.main = threading.main_thread().ident or 0

    async def press(self) -> str:
        """Press the button, and wait for ever the first time."""
        self.pressed += 1
        if self.pressed > 1:
            return "pressed again"
        try:
            while True:  # a signal right before the main thread waits is seen with the next one
                signal.pthread_kill(self.main, signal.SIGINT)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), timeout=1)
        finally:
            self.cancelled += 1


def machine(button: Button, saver: Any = None) -> Any:
    press = button.press
    script = [calls({"name": "press", "args": {}}), say()]
    policy = {"tools": {"in_doubt": "tell"}}
    given = Settings.model_validate(policy)
    return build_graph(
        ScriptedChatModel(script=script), [press], given, checkpointer=saver or memory()
    )


@pytest.mark.parametrize("mode", ["custom", "updates", "messages", "values"])
def test_a_watched_stream_is_interrupted_at_once(mode: str) -> None:
    """DU-01: its nodes run on threads; what they wait for is cancelled, and they clean up."""
    button = Button()
    graph = machine(button)

    with pytest.raises(KeyboardInterrupt):
        list(graph.stream(REQUEST, CONFIG, stream_mode=mode))
    assert button.cancelled == 1
    assert graph.get_state(CONFIG).next == ("tool",)


def test_an_interrupted_run_is_taken_up_again() -> None:
    """No handler took the interrupt for a failure of the task."""
    button = Button()
    graph = machine(button)
    with pytest.raises(KeyboardInterrupt):
        list(graph.stream(REQUEST, CONFIG, stream_mode="custom"))

    out = graph.invoke(None, CONFIG)

    assert out["result"].status == "completed"
    assert out["result"].error_struct is None


@pytest.mark.parametrize("saver", [memory, waiting])
def test_an_invocation_is_interrupted_as_it_ever_was(saver: Any) -> None:
    """Nothing watches: what the main thread waits for is the run, or a node."""
    button = Button()

    with pytest.raises(KeyboardInterrupt):
        machine(button, saver()).invoke(REQUEST, CONFIG)
    assert button.cancelled == 1


def test_the_signal_is_given_back() -> None:
    """After the last part, and with a stream that is closed before, Ctrl-C is whose it was."""
    handlers = []
    with pytest.raises(KeyboardInterrupt):
        list(machine(Button()).stream(REQUEST, CONFIG, stream_mode="custom"))
    handlers.append(signal.getsignal(signal.SIGINT))
    parts = machine(Button()).stream(REQUEST, CONFIG, stream_mode="custom")
    next(parts)
    parts.close()
    handlers.append(signal.getsignal(signal.SIGINT))

    assert handlers == [signal.default_int_handler] * 2


def test_who_has_taken_the_signal_keeps_it() -> None:
    """An application that ends in its own way on Ctrl-C is not pre-empted."""

    def theirs(number: int, _: object) -> None:
        """Do as an application would."""

    before = signal.signal(signal.SIGINT, theirs)
    try:
        parts = machine(Button()).stream(REQUEST, CONFIG, stream_mode="custom")
        next(parts)
        handler = signal.getsignal(signal.SIGINT)
        parts.close()
    finally:
        signal.signal(signal.SIGINT, before)

    assert handler is theirs


# --- No run waits for the threads of its event loop: an application may hold them all.

SETTINGS = Settings.model_validate({"evolution": {"enabled": False}})


class Refusing(ThreadPoolExecutor):
    """Threads that nobody may ask for anything."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked: list[Any] = []

    @override
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.asked.append((fn, args))
        raise RuntimeError(f"the loop's threads were asked to do {fn} {args}")


async def test_a_run_asks_nothing_of_the_threads_of_its_loop(
    postgres_url: str, tmp_path: Any
) -> None:
    """Nor do its checkpoints, its blocking tools, and whoever takes the thread up again."""
    refusing = Refusing()
    script = {
        "main": [calls(*(call("shout", text=f"{n}") for n in range(3))), say(), say("Again.")]
    }
    given = {"messages": [("user", "Do it")], "workspace": str(tmp_path)}
    config: Any = {"configurable": {"thread_id": "t"}}
    async with aopen_postgres(postgres_url) as pg:
        asyncio.get_running_loop().set_default_executor(refusing)
        machine: Any = build_graph(
            ScriptedChatModel(script=script), [tool(shout)], SETTINGS, persistence=pg
        )

        first = await machine.ainvoke(given, config)
        again = await machine.ainvoke(given, config)

    assert refusing.asked == []
    assert first["result"].status == again["result"].status == "completed"
