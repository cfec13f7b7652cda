"""One graph serves any number of event loops, whatever client its model has (FA-08)."""

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import certifi
import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.graph.models.loop_bound_model import LoopBoundModel
from tests.late import Late
from tests.openai_answers import Reply
from tests.openai_server import Fault, OpenAIServer, openai_server
from tests.parts import settings

from daruma import ClientPerLoop, Settings, build_graph
from daruma.graph.models._client_per_loop import certificates
from daruma.graph.run import Machine

KEY = SecretStr("sk-for-a-test")
Openai: Any = ChatOpenAI
anthropic: Any = Late("langchain_anthropic")


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    """A server that answers to everything, in two providers' protocols, and keeps connections."""
    with openai_server(lambda _: Reply("hello")) as server:
        yield server


OBJECTS: dict[str, Callable[[str], Any]] = {
    "openai": lambda url: Openai(model="m", base_url=url, api_key=KEY),
    "its own HTTP client": lambda url: Openai(
        model="m", base_url=url, api_key=KEY, http_async_client=ClientPerLoop(trust_env=False)
    ),
    "anthropic": lambda url: anthropic.ChatAnthropic(
        model_name="m", base_url=url.removesuffix("/v1"), api_key=KEY
    ),
    "another provider": lambda url: LoopBoundModel(url=url),
}
NAMES = {"openai:m": "/v1", "anthropic:m": ""}


@pytest.fixture(params=[*OBJECTS, *NAMES])
def graph(
    request: pytest.FixtureRequest, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> Machine:
    """A graph with a model by object or by name."""
    if make := OBJECTS.get(request.param):
        return build_graph(make(server.url), settings=Settings())
    provider = request.param.partition(":")[0].upper()
    monkeypatch.setenv(f"{provider}_API_KEY", KEY.get_secret_value())
    url = server.url.removesuffix("/v1") + NAMES[request.param]
    options = {"main": {"base_url": url}}
    return build_graph(request.param, settings=settings(llm={"options": options}))


def said(out: Any) -> tuple[str, str]:
    """Return how a run ended, and what was answered."""
    return out["result"].status, out["result"].output


async def ask(graph: Machine) -> tuple[str, str]:
    """Have three tasks done at once, then one whose answer is streamed."""
    given = {"messages": [("user", "hello")], "mode": "direct_chat"}
    await asyncio.gather(*(graph.ainvoke(given) for _ in range(2)))
    parts: list[Any] = [p async for p in graph.astream(given, stream_mode=["messages", "values"])]
    assert "".join(each[0].content for mode, each in parts if mode == "messages").count("hello") > 0
    return said(parts[-1][1])


DONE = ("completed", "hello")


def test_loops_in_turn_and_at_once(graph: Machine) -> None:
    """Four in a row, two of them beside another one that goes on in a thread; nothing leaks."""
    both = threading.Barrier(2)

    def beside() -> list[Any]:
        with asyncio.Runner() as runner:
            first = runner.run(ask(graph))
            both.wait(60)
            return [first, *(runner.run(ask(graph)) for _ in range(2))]

    with ThreadPoolExecutor(1) as thread:
        other = thread.submit(beside)
        found = [asyncio.run(ask(graph)) for _ in range(2)]
        both.wait(60)
        found += [asyncio.run(ask(graph)) for _ in range(2)]
        found += other.result(60)
    gc.collect()  # what was not closed warns now, and warnings are errors

    assert found == [DONE] * 7


@pytest.mark.long
def test_threads_of_a_web_page_and_a_notebook(graph: Machine) -> None:
    """Streamlit runs each click on a thread of its own; a notebook's cell is on a running loop."""
    given = {"messages": [("user", "hello")], "mode": "direct_chat"}

    def click() -> Any:
        return said(graph.invoke(given))

    def click_with_a_loop() -> Any:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(ask(graph))
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def cell() -> list[Any]:
        return [said(graph.invoke(given)), await ask(graph)]

    found: list[Any] = []
    for each in (click, click_with_a_loop, click, click_with_a_loop):
        with ThreadPoolExecutor(1) as thread:
            found.append(thread.submit(each).result(60))
    found += asyncio.run(cell())

    assert found == [DONE] * 6


@pytest.mark.long
def test_the_model_that_is_passed_in_stays_as_it_is(server: OpenAIServer) -> None:
    """A program asks it beside the graph, on its own loop, over its own client."""
    model: Any = OBJECTS["openai"](server.url)
    own = model.root_async_client
    graph = build_graph(model, settings=Settings())

    async def both() -> Any:
        await model.ainvoke("hello")
        done = await ask(graph)
        await model.ainvoke("hello")
        return done

    assert asyncio.run(both()) == DONE
    assert model.root_async_client is own
    assert model.max_retries is None


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_model_that_is_passed_in_repeats_nothing(kind: str) -> None:
    """TL-17: one place counts requests, whatever the object was made with."""
    requests = {"wait_seconds": 0.01, "per_model": 2}
    with openai_server(lambda _: Fault(503)) as server:
        model = OBJECTS[kind](server.url)
        graph = build_graph(model, settings=settings(llm={"requests": requests}))
        given = {"messages": [("user", "hello")], "mode": "direct_chat"}
        out = graph.invoke(given)

    assert out["result"].status == "failed"
    assert len(server.requests) == 2
    assert server.requests[0]["messages"] == server.requests[1]["messages"]


def test_an_http_client_of_one_loop_is_named_with_what_to_do(server: OpenAIServer) -> None:
    """One that was chosen is kept: its proxy or its certificates may be needed."""
    own = openai.DefaultAsyncHttpxClient(trust_env=False)
    model: Any = ChatOpenAI(model="m", base_url=server.url, api_key=KEY, http_async_client=own)
    requests = {"wait_seconds": 0.01, "per_call": 1}
    graph = build_graph(model, settings=settings(llm={"requests": requests}))
    given = {"messages": [("user", "hello")], "mode": "direct_chat"}

    async def twice() -> None:
        assert said(await graph.ainvoke(given)) == DONE

    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(twice())
        out = second.run(graph.ainvoke(given))

        assert "http_async_client=daruma.ClientPerLoop()" in out["result"].output
        first.run(own.aclose())


def test_what_is_trusted_is_read_once() -> None:
    """For all clients, as it takes long; anew where the variables name others."""
    known = certificates()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", certifi.where())
        own = certificates()
        assert (own is known, certificates() is own) == (False, True)
        assert certificates(trust_env=False) is not own

    assert certificates() is known
