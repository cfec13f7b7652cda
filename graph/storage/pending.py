"""What a run's tasks have written and the database does not have yet.

LangGraph saves what each task wrote, and then a checkpoint that follows from it. One transaction
does for both where the one comes right after the other; where it does not, as while other tasks of
the same superstep still run, what was written is stored by itself. Whoever dies in between does the
task again, as one who died before its end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from daruma.graph.storage.saving import WriteRow

APART: Final = 0.1
"""Seconds after which writes are stored by themselves; a checkpoint follows within a thousandth."""

_TURNS: Final = 20
"""How often the loop then still comes round: a checkpoint that it is only late with takes a dozen.

In a busy process the seconds say little: they may be over before what is ready has had its turn.
"""

STORING_APART: Final = "daruma-storing-apart"
"""The name of the tasks that do so."""


class PendingWrites:
    """The pending writes of one run; all of it on the loop of the database."""

    def __init__(
        self, store: Callable[[Sequence[WriteRow]], Awaitable[None]], apart: float = APART
    ) -> None:
        self._store = store
        self._apart = apart
        self._rows: list[WriteRow] = []
        self._storing: asyncio.Task[None] | None = None
        self._due: asyncio.Handle | None = None

    async def add(self, rows: Sequence[WriteRow]) -> None:
        """Take over what a task wrote. Raises what kept earlier writes from being stored."""
        self._refuse_after_a_loss()
        self._rows += rows
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(self._apart, self._come_round, _TURNS)

    async def stored_with(self, store: Callable[[list[WriteRow]], Awaitable[None]]) -> None:
        """Store them with something that may only be there once they are.

        Raises what kept them, or earlier ones, from being stored.
        """
        await self._stored_apart()
        rows = self._taken()
        try:
            await store(rows)
        except asyncio.CancelledError:
            self._rows[:0] = rows
            raise

    async def settled(self) -> None:
        """Have all of them stored. Raises what kept them from that."""
        await self._stored_apart()
        if self._rows:
            self._begin()
            await self._stored_apart()

    def _come_round(self, turns: int) -> None:
        """Begin after so many turns of the loop."""
        if turns:
            self._due = asyncio.get_running_loop().call_soon(self._come_round, turns - 1)
        else:
            self._begin()

    def _begin(self) -> None:
        """Store what is there, after what is being stored."""
        before, rows = self._storing, self._taken()
        self._storing = asyncio.create_task(self._store_after(before, rows), name=STORING_APART)
        self._storing.add_done_callback(_heard)

    async def _store_after(
        self, before: "asyncio.Task[None] | None", rows: Sequence[WriteRow]
    ) -> None:
        if before:
            await before
        await self._store(rows)

    async def _stored_apart(self) -> None:
        while self._storing and not self._storing.done():
            await asyncio.wait([self._storing])
        self._refuse_after_a_loss()

    def _refuse_after_a_loss(self) -> None:
        if self._storing and self._storing.done():
            self._storing.result()

    def _taken(self) -> list[WriteRow]:
        if self._due:
            self._due.cancel()
            self._due = None
        taken, self._rows = self._rows, []
        return taken


def _heard(ended: asyncio.Task[None]) -> None:
    """Take note of what went wrong: it is raised to the run, unless that was abandoned."""
    if not ended.cancelled():
        ended.exception()
