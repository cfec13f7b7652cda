"""What leaves the machine: cancellations always, exceptions as they were."""

import asyncio
import gc
import weakref
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import pytest
from langgraph.types import Command
from tests.parts import a_context, a_failure, a_state, memory
from tests.scripted_runs import Run, calls, illegal, say, shout

from daruma.graph.build import builder
from daruma.graph.contexts import Contexts
from daruma.graph.errors import Raised, run_node
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.state.channels import Update
from daruma.state.failure import ModelFailed, TaskFailed
from daruma.state.settings import Settings
from daruma.state.settings.tools import Tools
from daruma.tools.calls.registry import Registry
from daruma.tools.calls.tool import Tool, Toolset

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
    contexts = Contexts(ScriptedChatModel(script=[say()]), CancellingOnce([shout]), Settings())
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

    task = asyncio.create_task(run_node(hang, a_state(), a_context(), Raised()))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_provider_is_told_by_its_own_exception() -> None:
    """Ours stands for it only where there is none."""
    raised, own, ours = Raised(), ValueError("own"), ModelFailed("x", cause="ValueError")
    ours.__cause__ = own
    raised.note(a_failure(message="x"), ours)

    assert raised.behind(a_failure(message="x")) is own
    assert isinstance(raised.behind(a_failure(message="other")), TaskFailed)


def test_of_equal_failures_the_first_is_told() -> None:
    """EM-04."""
    raised, first = Raised(), ValueError("first")
    raised.note(a_failure(), first)
    raised.note(a_failure(), ValueError("second"))

    assert raised.behind(a_failure()) is first


def test_a_long_run_does_not_keep_all_that_was_ever_raised() -> None:
    """The newest are kept."""
    raised = Raised()
    for number in range(100):
        raised.note(a_failure(message=str(number)), ValueError(number))

    assert isinstance(raised.behind(a_failure(message="0")), TaskFailed)
    assert isinstance(raised.behind(a_failure(message="99")), ValueError)


class Held(ValueError):
    """Other than a built-in one it can be watched."""


def test_what_a_run_raised_is_let_go_of_at_its_end() -> None:
    """An exception holds all that was under way; nobody has to collect it in a circle."""
    raised, error = Raised(), Held("end")
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
    assert isinstance(raised.behind(a_failure()), TaskFailed)


def test_what_a_run_raised_is_neither_stored_nor_shown() -> None:
    """It is live: a debugger's stream and a checkpoint have to be JSON."""
    run = Run([say()])
    parts = list(run.graph.stream(HELLO, run.config, stream_mode="debug"))
    (state, *_) = run.graph.get_state_history(run.config)

    assert "raised" not in str([part["payload"].get("config") for part in parts])
    assert "raised" not in str(state.metadata) + str(state.config)
