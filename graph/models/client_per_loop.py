"""An HTTP client that any number of event loops may use, in turn or at once."""

import asyncio
import weakref
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import openai
from typing_extensions import override

if TYPE_CHECKING:
    import httpx2


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
