"""A TCP proxy before Postgres that does what networks do: cuts, delays, falls silent, refuses.

It knows so much of the protocol as to tell messages apart: what is sent in one piece can be cut in
its middle, between two messages.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from psycopg.conninfo import conninfo_to_dict, make_conninfo

Fate = Literal["pass", "cut before", "cut after", "swallow"]
"""What becomes of a client's message; ``cut after`` loses what the server answers to it."""

_STARTUP = 4
"""Bytes before the length of a client's first message: it has no type."""


class FaultProxy:
    """Forwards to a server, but for what ``fate`` says of a client's message, by its number.

    ``messages`` counts those that came, over all connections and but for each one's first;
    ``faults`` counts those that did not pass. ``delay`` is in seconds, for each piece that a client
    sends. While ``refusing``, connections are ended as soon as they are begun.
    """

    def __init__(self, server: str, loop: asyncio.AbstractEventLoop) -> None:
        parts = conninfo_to_dict(server)
        self._socket = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
        self.server = server
        self._loop = loop
        self._open: set[asyncio.StreamWriter] = set()
        self.fate: Callable[[int], Fate] = passing
        self.delay = 0.0
        self.refusing = False
        self.messages = 0
        self.faults = 0
        self.url = ""
        self.faulted = threading.Event()
        """Set once a message, or a connection, did not pass."""

    def count_from_here(self, fate: Callable[[int], Fate]) -> None:
        """Begin to count anew, under a new fate."""
        self.messages, self.faults, self.fate = 0, 0, fate
        self.faulted.clear()

    def refuse(self) -> None:
        """End all connections, and each new one, until :meth:`mend`."""
        self.refusing = True
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result()

    def mend(self) -> None:
        """Let everything pass again; a connection that has fallen silent stays so."""
        self.refusing, self.fate, self.delay = False, passing, 0.0

    async def serve(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        if self.refusing:
            self.faulted.set()
            back.close()
            return
        server, forth = await asyncio.open_unix_connection(self._socket)
        self._open |= {back, forth}
        answers = asyncio.create_task(_copied(server, back))
        try:
            await self._forwarded(client, forth, answers)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # it has ended, or the proxy does
        finally:
            answers.cancel()
            for writer in (forth, back):
                self._open.discard(writer)
                writer.close()

    async def _forwarded(
        self,
        client: asyncio.StreamReader,
        forth: asyncio.StreamWriter,
        answers: "asyncio.Task[None]",
    ) -> None:
        forth.write(await _message(client, _STARTUP))
        fate: Fate = "pass"
        while fate == "pass":
            message = await _message(client, 1 + _STARTUP)
            if self.delay and not client._buffer:  # type: ignore[attr-defined]  # a piece has ended
                await asyncio.sleep(self.delay)
            number, self.messages = self.messages, self.messages + 1
            fate = self.fate(number)
            if fate in ("pass", "cut after"):
                forth.write(message)
                await forth.drain()
        self.faults += 1
        self.faulted.set()
        answers.cancel()
        while fate == "swallow" and await client.read(65536):
            pass

    async def _end_all(self) -> None:
        for writer in tuple(self._open):
            writer.transport.abort()


def passing(_: int) -> Fate:
    """Nothing goes wrong."""
    return "pass"


def once(at: int, fate: Fate) -> Callable[[int], Fate]:
    """One message has that fate, the others pass."""
    return lambda number: fate if number == at else "pass"


@contextmanager
def fault_proxy(server: str) -> Iterator[FaultProxy]:
    """Have a proxy before a server that listens on a Unix socket; ``url`` connects through it."""
    loop = asyncio.new_event_loop()
    proxy = FaultProxy(server, loop)
    thread = threading.Thread(target=loop.run_forever, name="fault-proxy")
    thread.start()
    starting = asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    listening = asyncio.run_coroutine_threadsafe(starting, loop).result()
    port = listening.sockets[0].getsockname()[1]
    proxy.url = make_conninfo(
        server, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable"
    )
    try:
        yield proxy
    finally:
        asyncio.run_coroutine_threadsafe(_closed(listening), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _closed(listening: asyncio.Server) -> None:
    listening.close()
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*rest, return_exceptions=True)


async def _message(client: asyncio.StreamReader, head: int) -> bytes:
    """Read one message; its length stands in the last four bytes of its head, and counts them."""
    begun = await client.readexactly(head)
    return begun + await client.readexactly(int.from_bytes(begun[-4:], "big") - 4)


async def _copied(server: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await server.read(65536):
            back.write(piece)
            await back.drain()
        back.close()
