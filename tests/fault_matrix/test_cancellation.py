"""A run that its caller cancels stops at once, says so by cancelling, and can be taken up again."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langgraph.types import Command
from tests.fault_matrix.rows import call, pay
from tests.fault_matrix.runs import CONFIG, REQUEST, invoked, limited, reached, seen_of
from tests.openai_answers import Reply
from tests.openai_server import Answer, Fault, OpenAIServer, openai_server
from tests.parts import memory
from tests.scripted_runs import illegal

from daruma.graph.build import build_graph
from daruma.state.settings import Settings

MAIN = threading.main_thread().ident or 0


def unhurried() -> Settings:
    """No limit ends what hangs: only the caller does."""
    return limited().model_copy(update={"llm": Settings().llm, "tools": Settings().tools})


@contextmanager
def serving(*answers: Answer, hung: Callable[[], object]) -> Iterator[OpenAIServer]:
    """A server that tells when it is asked for an answer that hangs."""
    left = iter(answers)

    def reply(_: dict[str, Any]) -> Answer:
        answer = next(left)
        if isinstance(answer, Fault):
            hung()
        return answer

    with openai_server(reply) as server, reached(server.url):
        yield server


def interrupt_main() -> None:
    signal.pthread_kill(MAIN, signal.SIGINT)


def taken_up(graph: Any, server: OpenAIServer) -> None:
    """Go on with the thread, which comes to its right end."""
    state = graph.get_state(CONFIG)
    assert state.next
    assert state.values.get("failure") is None

    invoked(graph, None)
    if questions := graph.get_state(CONFIG).interrupts:  # the call was cut short (DU-06)
        invoked(graph, Command(resume={each.id: {"answer": "again"} for each in questions}))

    end = seen_of(graph, server, [])
    assert (end.ending.status, end.output) == ("completed", "Done.")
    assert illegal(end.messages) == []


def test_ctrl_c_during_a_request_that_hangs() -> None:
    """It comes out of ``invoke`` as it is; nothing is classified as a failure (EM-02)."""
    hanging = Fault(hang=threading.Event())
    with serving(hanging, Reply("Done."), hung=interrupt_main) as server:
        graph: Any = build_graph("openai:a", settings=unhurried(), checkpointer=memory())

        with pytest.raises(KeyboardInterrupt):
            graph.invoke(REQUEST, CONFIG)

        taken_up(graph, server)
    assert len(server.requests) == 2


def test_a_cancelled_stream_during_a_request_that_hangs() -> None:
    """Before the first word of the answer."""
    waiting, hanging = threading.Event(), Fault(hang=threading.Event())
    with serving(hanging, Reply("Done."), hung=waiting.set) as server:
        graph: Any = build_graph("openai:a", settings=unhurried(), checkpointer=memory())

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancelled_when(waiting, graph))

        taken_up(graph, server)
    assert len(server.requests) == 2


def test_a_cancelled_stream_in_the_midst_of_an_answer() -> None:
    """Of the half answer nothing is left in the history."""
    said, hanging = threading.Event(), Fault(cut="later", hang=threading.Event())
    with serving(hanging, Reply("Done."), hung=threading.Event().set) as server:
        graph: Any = build_graph("openai:a", settings=unhurried(), checkpointer=memory())

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancelled_when(said, graph, said=said))

        taken_up(graph, server)
    assert "half" not in str(graph.get_state(CONFIG).values["messages"])
    assert len(server.requests) == 2


@pytest.mark.long
def test_ctrl_c_while_a_tool_hangs() -> None:
    """Whether it took effect is asked when the thread is taken up, and then it is called again."""
    began: list[int] = []

    async def slow(amount: int) -> str:
        """Pay an amount, slowly at first."""
        began.append(amount)
        if len(began) == 1:
            interrupt_main()
            await asyncio.Event().wait()
        return pay(amount)

    with serving(call("slow"), Reply("Done."), hung=interrupt_main) as server:
        graph: Any = build_graph("openai:a", [slow], unhurried(), checkpointer=memory())

        with pytest.raises(KeyboardInterrupt):
            graph.invoke(REQUEST, CONFIG)

        taken_up(graph, server)
    assert began == [5, 5]


def test_a_cancelled_stream_while_a_tool_hangs() -> None:
    """Whether it took effect is asked when the thread is taken up, and then it is called again."""
    waiting, began = threading.Event(), list[int]()

    async def slow(amount: int) -> str:
        """Pay an amount, slowly at first."""
        began.append(amount)
        if len(began) == 1:
            waiting.set()
            await asyncio.Event().wait()
        return pay(amount)

    with serving(call("slow"), Reply("Done."), hung=interrupt_main) as server:
        graph: Any = build_graph("openai:a", [slow], unhurried(), checkpointer=memory())

        with pytest.raises(asyncio.CancelledError):
            asyncio.run(cancelled_when(waiting, graph))

        taken_up(graph, server)
    assert began == [5, 5]


async def cancelled_when(
    waiting: threading.Event, graph: Any, said: threading.Event | None = None
) -> None:
    """Stream a run, and cancel it when something hangs; ``said`` is set by its first words."""

    async def all_of_it() -> None:
        async for part in graph.astream(REQUEST, CONFIG, stream_mode="messages"):
            if said and part[0].text:
                said.set()

    run = asyncio.create_task(all_of_it())
    await asyncio.to_thread(waiting.wait, 15)
    run.cancel()
    await run
