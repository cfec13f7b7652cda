"""An HTTP client that any number of event loops may use, in turn or at once; not imported early."""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import openai
from typing_extensions import override

from daruma.tools.threads import to_thread

if TYPE_CHECKING:
    import ssl

    import httpx2


class ClientPerLoop(openai.DefaultAsyncHttpxClient):
    """An HTTP client whose connections belong to the event loop that asked for them.

    A connection pool dies with the loop it first served, but a compiled graph outlives many loops
    (`asyncio.run`, a notebook, the thread behind `invoke`). So each loop gets a client of its own,
    and an asynchronous generator that closes it: a loop finishes its generators before it ends
    (`shutdown_asyncgens`, which `asyncio.run` calls). When this object is forgotten, the clients of
    loops that go on are closed on them; until then they are kept alive from outside, for in a
    circle with their connections both would be collected at once, and those never be closed.

    ``options`` are those of ``httpx2.AsyncClient``, such as ``proxy`` or ``verify``: a model whose
    HTTP client has to be chosen is given one of these, ``ChatOpenAI(http_async_client=...)``.
    """

    def __init__(self, **options: Any) -> None:
        if options.keys().isdisjoint({"verify", "cert", "http2"}):  # these would change it
            options["verify"] = certificates(trust_env=options.get("trust_env", True))
        super().__init__(**options)
        self._made_with = options
        self._per_loop: _PerLoop = {}
        weakref.finalize(self, _close_all, self._per_loop).atexit = False

    @override
    async def send(self, request: "httpx2.Request", **options: Any) -> "httpx2.Response":
        return await (await self._of_this_loop()).send(request, **options)

    async def _of_this_loop(self) -> "httpx2.AsyncClient":
        loop = asyncio.get_running_loop()
        if loop not in self._per_loop:
            # In a thread, as it may read certificates; of several first calls one client is kept.
            made = _OfOneLoop(await to_thread(openai.DefaultAsyncHttpxClient, **self._made_with))
            kept = self._per_loop.setdefault(loop, (made, made.until_the_end(self._per_loop, loop)))
            if kept[0] is made:
                await anext(kept[1])
        return self._per_loop[loop][0].client


def certificates(*, trust_env: bool = True) -> "ssl.SSLContext":
    """Return what is trusted: read once for all clients, since that takes some 30 ms."""
    variables = map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return _certificates(*variables, trust_env=trust_env)


@cache
def _certificates(*_: str | None, trust_env: bool) -> "ssl.SSLContext":
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


class _OfOneLoop:
    """A client that may be closed from two sides: whoever comes second waits for the first."""

    def __init__(self, client: "httpx2.AsyncClient") -> None:
        self.client = client
        self._closing = asyncio.Lock()

    async def until_the_end(
        self, per_loop: "_PerLoop", loop: asyncio.AbstractEventLoop
    ) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            per_loop.pop(loop, None)
            await self.close()

    async def close(self) -> None:
        async with self._closing:
            await self.client.aclose()


_Kept = tuple[_OfOneLoop, AsyncGenerator[None]]
_PerLoop = dict[asyncio.AbstractEventLoop, _Kept]


def _close_all(per_loop: _PerLoop) -> None:
    for loop, kept in list(per_loop.items()):
        with suppress(RuntimeError):  # the loop has ended, and closed its client
            loop.call_soon_threadsafe(_begin_to_close, loop, kept)


def _begin_to_close(loop: asyncio.AbstractEventLoop, kept: _Kept) -> None:
    task = loop.create_task(kept[0].close())
    # Dropped before, the generator would leave the loop nothing to wait for if that ends now.
    task.add_done_callback(lambda _: kept)
