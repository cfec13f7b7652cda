"""A stream that is cancelled ends then and there, at whatever moment it happens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import openai
import pytest
from langchain_core.messages import HumanMessage
from tests.openai_answers import Reply
from tests.openai_server import openai_server
from typing_extensions import override

from daruma.graph.models import ClientPerLoop
from daruma.graph.models._openai_answers import openai_model
from daruma.state.settings import Requests

Then = Callable[[], object]


class Telling(ClientPerLoop):
    """A client that does something in the very moment in which a part of an answer comes in."""

    def __init__(self, then: Then) -> None:
        super().__init__()
        self._then = then

    @override
    async def send(self, request: Any, **options: Any) -> Any:
        response = await super().send(request, **options)
        response.stream = Body(response.stream, self._then)
        return response


class Body(httpx2.AsyncByteStream):
    """An answer's body, with what is done at each part of it."""

    def __init__(self, body: Any, then: Then) -> None:
        self._body, self._then = body, then

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._body:
            self._then()
            yield part

    @override
    async def aclose(self) -> None:
        await self._body.aclose()


async def test_a_cancellation_that_comes_together_with_a_chunk_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.11 forgets it there, and the answer would be heard to its end."""
    said = list[str]()
    with openai_server([Reply("one two")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run = list[asyncio.Task[Any]]()

        def cancel() -> None:
            run[0].cancel()

        async def all_of_it() -> None:
            model = heard_by(Telling(cancel))
            said.extend([chunk.text async for chunk in model._astream([HumanMessage("Count")])])

        run.append(asyncio.create_task(all_of_it()))
        with pytest.raises(asyncio.CancelledError):
            await run[0]

    assert said == []


def heard_by(client: ClientPerLoop) -> Any:
    """A model whose answers come through a client."""
    model = openai_model("m", Requests())
    through = model.root_async_client.with_options(http_client=client)
    return model.model_copy(update={"async_client": through.chat.completions})


def test_a_proxy_of_the_environment_is_used_without_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """LangChain warns that a client of its own making would pass it by: none of ours is."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    model: Any = openai_model("m", Requests())

    assert caplog.records == []
    with pytest.raises(openai.APIConnectionError):
        model.root_client.models.list()
