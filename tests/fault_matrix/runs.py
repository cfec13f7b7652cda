"""Driving a run into a fault, over the real client, within its time."""

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from tests.fault_matrix.rows import ROWS, Ending, Row, Situation
from tests.openai_answers import Reply
from tests.openai_server import Answer, Answerer, OpenAIServer, openai_server
from tests.parts import memory, settings

from daruma.graph.build import build_graph
from daruma.state.channels import State
from daruma.state.settings import Settings

BOUND = 15.0
"""Seconds for a run. By the limits below no row needs more than a third of it."""
TOO_LONG = f"the run took longer than {BOUND} s"
SHORT, LONG = 0.8, 10.0
"""Seconds for one request: of a row that hangs, and of one that a busy machine must not spoil."""
CONFIG: Any = {"configurable": {"thread_id": "t"}}
REQUEST: Any = {"messages": [("user", "Pay 5")]}
RETRY = {
    "strategy": "retry",
    "reasoning": "It may have passed.",
    "action": {},
    "expected_outcome": "an answer",
    "confidence": 0.9,
}

Events = list[dict[str, Any]]
Way = Callable[[Any, Any], Events]


@dataclass(frozen=True)
class Seen:
    """What a run left behind."""

    ending: Ending
    output: str
    messages: Sequence[AnyMessage]
    events: Events


@cache
def seen(name: str, situation: Situation, way: str) -> Seen:
    """Run a row's task once, to its end."""
    row = ROWS[name]
    with (
        openai_server(reply_of(row, situation)) as server,
        reached(server.url if row.reachable else nowhere()),
    ):
        seconds = SHORT if row.hangs else LONG
        given = limited(fallback=situation == "backed", seconds=seconds)
        graph: Any = build_graph("openai:a", row.tools, given, checkpointer=memory())
        events = WAYS[way](graph, REQUEST)
        return seen_of(graph, server, events)


def limited(*, fallback: bool = False, seconds: float = SHORT) -> Settings:
    """Return settings under which nothing takes long."""
    requests = {"seconds": seconds, "chunk_seconds": seconds, "wait_seconds": 0}
    llm = {"requests": requests, "fallback_models": ["openai:b"] if fallback else []}
    chain = {"recovery": {"wait_seconds": 0}}
    return settings(llm=llm, fallback_chain=chain, tools={"timeout": 0.2})


def seen_of(graph: Any, server: OpenAIServer, events: Events) -> Seen:
    """Read how a run ended."""
    state = State(**graph.get_state(CONFIG).values)
    result = state.result
    status = result.status if result else "unfinished"
    code = result.error_struct.error_code if result and result.error_struct else None
    ending = Ending(status, code, len(server.requests))
    return Seen(ending, result.output if result else "", state.messages, events)


def reply_of(row: Row, situation: Situation) -> Answerer:
    """Return what the server says: the fault where the situation has it, else what is right."""
    asked: list[None] = []

    def reply(request: dict[str, Any]) -> Answer:
        asked.append(None)
        faulty = {
            "always": True,
            "once": len(asked) == 1,
            "backed": request["model"] == "a",
        }[situation]
        return row.says(request) if faulty else right(request)

    return reply


def right(request: dict[str, Any]) -> Reply:
    """Answer as a model does that is well, also when it is asked how to recover."""
    asked_to_recover = "strategy" in str(request["messages"][0]["content"])
    return Reply(json.dumps(RETRY) if asked_to_recover else "Done.")


@contextmanager
def reached(url: str) -> Iterator[None]:
    """Let the client find its server at an address."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "sk-test")
        environment.setenv("OPENAI_BASE_URL", url)
        yield


def nowhere() -> str:
    """Return an address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


def invoked(graph: Any, request: Any) -> Events:
    """Run synchronously; Ctrl-C ends what takes too long."""
    main = threading.main_thread().ident or 0
    guard = threading.Timer(BOUND, signal.pthread_kill, (main, signal.SIGINT))
    guard.start()
    try:
        graph.invoke(request, CONFIG)
    except KeyboardInterrupt:
        raise AssertionError(TOO_LONG) from None
    finally:
        guard.cancel()
        guard.join()
    return []


def streamed(graph: Any, request: Any) -> Events:
    """Run asynchronously with the model's answers streamed; returns the events."""

    async def all_of_it() -> Events:
        events: Events = []
        async with asyncio.timeout(BOUND):
            modes = ["messages", "custom"]
            async for mode, part in graph.astream(request, CONFIG, stream_mode=modes):
                events += [part] if mode == "custom" else []
        return events

    try:
        return asyncio.run(all_of_it())
    except TimeoutError:
        raise AssertionError(TOO_LONG) from None


WAYS: dict[str, Way] = {"invoke": invoked, "astream": streamed}
