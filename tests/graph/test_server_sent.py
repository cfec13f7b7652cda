"""Events as browsers listen to them."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from daruma.graph.follow import as_text, server_sent
from daruma.graph.storage.events import Heard


def test_an_event_is_one_block() -> None:
    """Its lines are one: a line break within would end it."""
    text = as_text(Heard(7, {"type": "reflected", "text": "one\ntwo é"}))

    assert text == 'id: 7\nevent: reflected\ndata: {"type": "reflected", "text": "one\\ntwo é"}\n\n'


class Slow:
    """Events of which the second one comes when it is let."""

    def __init__(self) -> None:
        self.let, self.closed = asyncio.Event(), False

    async def __aiter__(self) -> AsyncGenerator[Heard]:
        try:
            yield Heard(1, {"type": "one"})
            await self.let.wait()
            yield Heard(2, {"type": "two"})
        finally:
            self.closed = True


async def test_a_long_silence_is_broken() -> None:
    """By comments, which listeners pass over; then the events go on."""
    slow: Any = Slow()
    told = aiter(server_sent(slow, every=0.001))

    first, silence = await anext(told), await anext(told)
    slow.let.set()
    rest = [each async for each in told if not each.startswith(":")]

    assert (first[:5], silence) == ("id: 1", ": still there\n\n")
    assert [each[:5] for each in rest] == ["id: 2"]
    assert slow.closed


async def test_who_goes_away_leaves_nothing_behind() -> None:
    """The events are closed with their listener."""
    slow: Any = Slow()
    told: Any = server_sent(slow)
    await anext(told)

    await told.aclose()

    assert slow.closed
