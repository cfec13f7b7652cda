"""One way to run: everything is asynchronous, and who calls synchronously waits for one loop."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from tests.in_time import in_time
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, call, calls, say, shout
from tests.waiting_saver import waiting
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import aopen_postgres, open_postgres
from daruma.graph.sync import LeftBehind, background_loop, iterate, on, run
from daruma.state.settings import Settings

CONFIG: Any = {"configurable": {"thread_id": "t"}}

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


@pytest.mark.long
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


# --- A synchronous run is the asynchronous one on the background loop: its caller sees none of it.

HELLO: Any = {"messages": [("user", "Hello")]}


def a_graph(script: Any, *tools: Any, saver: Any = None) -> Any:
    model = RecordingModel(script=script)
    return build_graph(model, tools, settings(), checkpointer=saver or memory())


async def counting(ended: list[str], most: int = 3) -> AsyncIterator[int]:
    try:
        for n in range(most):
            CALLER.set(f"{CALLER.get()}{n}")
            yield n
    finally:
        ended.append(CALLER.get())


def test_parts_are_iterated_in_one_context() -> None:
    """What a generator sets for itself is there when it goes on, and its reader has none of it."""
    CALLER.set("me")
    ended: list[str] = []

    assert list(iterate(counting(ended))) == [0, 1, 2]
    assert ended == ["me012"]
    assert CALLER.get() == "me"


@pytest.mark.parametrize("leave", ["closed", "dropped", "dropped on the loop"])
def test_who_stops_reading_ends_what_was_read(leave: str) -> None:
    """At once, with its clean-up; also where nobody is left to wait for it."""
    ended: list[str] = []
    parts = [iterate(counting(ended))]
    assert next(parts[0]) == 0

    async def drop() -> None:
        parts.clear()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    if leave == "closed":
        parts[0].close()  # type: ignore[attr-defined]
    elif leave == "dropped":
        parts.clear()
    else:
        run(drop())

    assert len(ended) == 1


def test_any_other_checkpointer_works_in_a_synchronous_run() -> None:
    """One that has no asynchronous methods is called on threads."""
    graph = a_graph([calls("shout"), say(), say()], shout, saver=waiting())

    parts = list(graph.stream(HELLO, CONFIG, stream_mode="values"))
    out = graph.invoke(HELLO, CONFIG)

    assert parts[-1]["result"].completed
    assert out["result"].completed
    assert len(list(graph.get_state_history(CONFIG))) > 6


def test_results_keep_their_order_in_any_other_checkpointer() -> None:
    """TL-02: LangGraph tells a checkpointer which task comes first if it can take that."""
    turn = calls(*(call("shout", f"c{n}", text=f"{n}") for n in range(6)))
    graph = a_graph([turn, say()], shout, saver=waiting())

    graph.invoke(HELLO, CONFIG)

    kept = graph.get_state(CONFIG).values["messages"]
    assert [m.text for m in kept if m.type == "tool"] == [f"{n}" for n in range(6)]


async def test_a_checkpointer_of_another_loop_is_asked_there(postgres_url: str) -> None:
    """LangGraph's own asynchronous ones belong to the loop that they were made on.

    Their tables lie beside ours: an application may have both in one database.
    """
    async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
        await saver.setup()
        graph = a_graph([calls("shout"), say(), say()], shout, saver=saver)

        out = await asyncio.to_thread(graph.invoke, HELLO, CONFIG)
        again = await graph.ainvoke(HELLO, CONFIG)
        with pytest.raises(RuntimeError, match="own event loop"):
            graph.invoke(HELLO, CONFIG)

    assert out["result"].completed
    assert again["result"].completed


def test_the_callers_context_is_seen_in_tools() -> None:
    """It holds who asks, what is traced, and the like."""
    seen = []

    def look(text: str) -> str:
        """Look."""
        seen.append((text, CALLER.get()))
        return text

    token = CALLER.set("me")
    a_graph([calls("look"), say()], look).invoke(HELLO, CONFIG)
    CALLER.reset(token)

    assert [who for _, who in seen] == ["me"]


def test_a_synchronous_call_that_could_never_end_is_refused() -> None:
    """On the background loop itself, whatever it would be kept in."""
    for saver in (memory(), waiting()):
        graph = a_graph([say()], saver=saver)

        async def invoke(graph: Any = graph) -> None:
            graph.invoke(HELLO, CONFIG)

        with pytest.raises(RuntimeError, match="own event loop"):
            in_time(partial(run, invoke()))


def test_a_tool_may_run_another_graph(postgres_url: str) -> None:
    """In the tool's thread, while the run that it is called in waits for it."""
    with open_postgres(postgres_url) as postgres:
        inner = build_graph(RecordingModel(script=[say("Within.")]), (), settings(), postgres)

        def ask(text: str) -> str:
            """Ask another."""
            given: Any = {"messages": [("user", text)]}
            at: Any = {"configurable": {"thread_id": "inner"}}
            return str(inner.invoke(given, at)["result"].output)

        model = RecordingModel(script=[calls("ask"), say()])
        out: Any = build_graph(model, [ask], settings(), postgres).invoke(HELLO, CONFIG)

    assert [m.text for m in out["messages"] if m.type == "tool"] == ["Within."]


@pytest.mark.parametrize("saver", [waiting, memory])
def test_a_graph_of_langgraphs_keeps_ours_in_its_own_checkpointer(saver: Any) -> None:
    """FA-08: as a node it is kept there, in a node it is a run of its own."""
    seen = []
    inner = build_graph(RecordingModel(script=[say(), say()]), settings=settings())

    def look(_: Any) -> dict[str, Any]:
        seen.append(inner.invoke(HELLO)["result"].completed)
        return {}

    outer: Any = StateGraph(MessagesState)
    outer.add_sequence([("look", look), ("ours", inner)]).add_edge(START, "look")
    kept = saver()
    out = outer.compile(checkpointer=kept).invoke(HELLO, CONFIG)

    assert seen == [True]
    assert out["messages"][-1].text
    assert any(each.config["configurable"]["checkpoint_ns"] for each in kept.list(CONFIG))


# --- Ctrl-C ends a synchronous run at once, whatever its nodes are at, and the thread goes on.

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
