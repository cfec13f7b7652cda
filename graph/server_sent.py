"""Events of a thread in the form that browsers listen to: server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from daruma.graph.following import Following
from daruma.graph.storage.event_log import Heard

STILL_THERE: Final = 15.0
"""Seconds of silence after which a comment is sent, as proxies close what is silent for long."""


async def server_sent(events: Following, *, every: float = STILL_THERE) -> AsyncIterator[str]:
    """Yield a thread's events as server-sent ones, until it stops.

    Their ``event`` is the type, ``data`` the event in JSON, and ``id`` what a browser that comes
    back gives as ``Last-Event-ID``.
    """
    told = aiter(events)
    coming = asyncio.ensure_future(anext(told, None))
    try:
        while True:
            await asyncio.wait([coming], timeout=every)
            if not coming.done():
                yield ": still there\n\n"
                continue
            if (heard := coming.result()) is None:
                return
            yield as_text(heard)
            coming = asyncio.ensure_future(anext(told, None))
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await coming
        await told.aclose()


def as_text(heard: Heard) -> str:
    """Return one event as it is sent."""
    data = json.dumps(heard.event, ensure_ascii=False, default=str)
    return f"id: {heard.id}\nevent: {heard.type}\ndata: {data}\n\n"
