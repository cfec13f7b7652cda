"""OpenAI's client with our timeouts, usable from any number of event loops, in turn or at once."""

import asyncio
import json
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import openai
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from typing_extensions import override

from daruma.graph.models.errors import ModelUnavailable
from daruma.graph.models.heard_calls import HeardCalls
from daruma.state.settings_llm import Requests

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 5.0


class ClientPerLoop(openai.DefaultAsyncHttpxClient):
    """An HTTP client whose connections belong to the event loop that asked for them.

    A connection pool dies with the loop it first served, but a compiled graph outlives many loops
    (`asyncio.run`, a notebook, the thread behind `invoke`). So each loop gets a client of its own,
    and an asynchronous generator that closes it: a loop finishes its generators before it ends
    (`shutdown_asyncgens`, which `asyncio.run` calls). When this object is forgotten, the clients of
    loops that go on are closed on them; until then they are kept alive from outside, for in a
    circle with their connections both would be collected at once, and those never be closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._per_loop: dict[asyncio.AbstractEventLoop, _Kept] = {}
        weakref.finalize(self, _close_all, self._per_loop).atexit = False

    @override
    async def send(self, request: "httpx2.Request", **options: Any) -> "httpx2.Response":
        return await (await self._of_this_loop()).send(request, **options)

    async def _of_this_loop(self) -> "httpx2.AsyncClient":
        loop = asyncio.get_running_loop()
        if loop not in self._per_loop:
            # In a thread, as it reads the certificates; of several first calls one client is kept.
            client = await asyncio.to_thread(openai.DefaultAsyncHttpxClient)
            kept = self._per_loop.setdefault(loop, (client, _closing(self._per_loop, loop, client)))
            if kept[0] is client:
                await anext(kept[1])
        return self._per_loop[loop][0]


_Kept = tuple["httpx2.AsyncClient", AsyncGenerator[None]]
_PerLoop = dict[asyncio.AbstractEventLoop, _Kept]


async def _closing(
    per_loop: _PerLoop, loop: asyncio.AbstractEventLoop, client: "httpx2.AsyncClient"
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        per_loop.pop(loop, None)
        await client.aclose()


def _close_all(per_loop: _PerLoop) -> None:
    for loop, (_, closing) in list(per_loop.items()):
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(_finish(closing), loop)


async def _finish(closing: AsyncGenerator[None]) -> None:
    await closing.aclose()


class _Model(ChatOpenAI):
    """The stock client, but for calls whose arguments are no object of JSON.

    LangChain would refuse the whole answer for one such call; it is made one that can not be read.
    In a stream it would complete what was cut off; the call as it was sent goes with the answer.
    """

    @property
    def circuit_key(self) -> str:
        """Equal for all models of one name at one address."""
        return f"{self.model_name} at {self.root_async_client.base_url}"

    @override
    def _create_chat_result(
        self, response: Any, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        plain = response if isinstance(response, dict) else response.model_dump()
        for choice in plain.get("choices") or ():
            for call in (choice.get("message") or {}).get("tool_calls") or ():
                function = call.get("function") or {}
                function["arguments"] = _readable(function.get("arguments"))
        return super()._create_chat_result(plain, generation_info)

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        heard, task = HeardCalls(), asyncio.current_task()
        async for chunk in super()._astream(*args, **kwargs):
            # Python 3.11 loses a cancellation that comes together with a chunk (`wait_for`).
            if task and task.cancelling():
                raise asyncio.CancelledError
            heard.hear(chunk)
            yield chunk
        for chunk in heard.unread():
            yield chunk


def _readable(arguments: object) -> str:
    """Return arguments as they are if they are an object, or not JSON; else as no JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    try:
        return text if isinstance(json.loads(text), dict) else f"not an object: {text}"
    except ValueError:
        return text or "nothing"


def openai_model(name: str, requests: Requests) -> ChatOpenAI:
    """A chat model of OpenAI, or of a server that speaks its protocol at `OPENAI_BASE_URL`.

    `OPENAI_API_KEY` is required by OpenAI itself; another server gets a placeholder without it.
    It makes one request for a call: whoever calls counts them. Keep-alive comments hold off the
    limit on silence, but not the one on the time between two chunks of a stream. Raises
    `ModelUnavailable` when the environment lacks what is needed.
    """
    base_url = os.environ.get("OPENAI_BASE_URL") or None
    return _Model(
        model=name,
        base_url=base_url,
        api_key=_key(base_url),
        timeout=openai.Timeout(requests.seconds, connect=CONNECT_SECONDS),
        stream_chunk_timeout=requests.chunk_seconds,
        stream_usage=True,
        max_retries=0,
        http_async_client=ClientPerLoop(),
        http_socket_options=(),  # with any, the synchronous client ignores HTTPS_PROXY
    )


def _key(base_url: str | None) -> SecretStr:
    if base_url is not None and urlsplit(base_url).scheme not in {"http", "https"}:
        raise ModelUnavailable("OPENAI_BASE_URL has to start with http:// or https://")
    if os.environ.get("OPENAI_PROXY"):
        raise ModelUnavailable("OPENAI_PROXY is not supported: set HTTPS_PROXY in its place")
    key = os.environ.get("OPENAI_API_KEY") or None
    if key is None and (base_url is None or _is_openai(base_url)):
        raise ModelUnavailable(
            "OPENAI_API_KEY is not set: set it, or point OPENAI_BASE_URL at a server without keys"
        )
    return SecretStr(key or "no-key-needed")


def _is_openai(base_url: str) -> bool:
    return f".{urlsplit(base_url).hostname}".endswith(".openai.com")
