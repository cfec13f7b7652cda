"""Ctrl-C ends a synchronous run at once, whatever its nodes are at, and the thread goes on."""

import asyncio
import signal
import threading
from contextlib import suppress
from typing import Any

import pytest
from tests.parts import memory
from tests.scripted_runs import calls, say
from tests.waiting_saver import waiting

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.state.settings import Settings

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
