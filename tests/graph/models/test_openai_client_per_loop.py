"""Connections end with the loop or with the model, whichever ends first, and nobody hears of it."""

import asyncio
import gc
import time
import weakref
from typing import Any

import pytest
from tests.openai_answers import Reply
from tests.openai_server import openai_server

from daruma.graph.models._openai_answers import openai_model
from daruma.state.settings import Requests


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


async def asked(model: Any) -> None:
    """Ask once, over a connection that is then kept."""
    await model.ainvoke("hello")


def test_a_model_may_be_dropped_while_its_loop_is_ending(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both close the client, at the same time: its one closing is waited for."""
    with openai_server(lambda _: Reply("hi")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = openai_model("m", Requests())
        with asyncio.Runner() as runner:
            runner.run(asked(model))
            client = weakref.ref(model.root_async_client._client)
            del model
            collect(client)
        gc.collect()  # what was not closed warns now, and warnings are errors

    assert caplog.records == []
    assert server.connections == 1


def test_a_model_that_is_dropped_is_closed_on_its_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server sees it hang up while the loop goes on."""
    with openai_server(lambda _: Reply("hi")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = openai_model("m", Requests())
        with asyncio.Runner() as runner:
            runner.run(asked(model))
            client = weakref.ref(model.root_async_client._client)
            del model
            collect(client)
            runner.run(server_sees_the_end(server))


def collect(forgotten: "weakref.ref[Any]") -> None:
    """Collect until it is gone: a collection that is asked for beside another one does nothing."""
    until = time.monotonic() + 60
    while forgotten() is not None:
        assert time.monotonic() < until, "something still refers to it"
        gc.collect()


async def server_sees_the_end(server: Any) -> None:
    """Return when the server's only connection was ended by the client."""
    (connection,) = server._open
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    with connection.dup() as connection:
        loop.add_reader(connection, ended.set)
        async with asyncio.timeout(60):
            await ended.wait()
        loop.remove_reader(connection)
