"""Following a thread that somebody else runs: its events as they come, from whichever process."""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_core.runnables import RunnableConfig

from daruma.graph.bridge import on, run
from daruma.graph.door import open_questions
from daruma.graph.replies import replies_of
from daruma.graph.stopping import stop_of
from daruma.graph.storage.database import Database
from daruma.graph.storage.event_log import MOST, EventLog, Heard
from daruma.graph.workers.standing import standing_of
from daruma.state.events import RunStopped

if TYPE_CHECKING:
    from daruma.graph.compiled import Machine

LOOK: Final = 2.0
"""Seconds after which a follower looks by himself: a process that was killed says nothing."""


@dataclass
class Following:
    """The events of a thread from one place on, until it stops; for ``async for`` and ``for``.

    The last one is ``run_stopped``: then nobody works on the thread, or is to. Who goes away
    disturbs nothing, and can go on ``after`` the id of the last event that he had.
    """

    graph: "Machine"
    database: Database
    log: EventLog
    thread_id: str
    after: int

    async def __aiter__(self) -> AsyncGenerator[Heard]:
        """Yield the events as they come."""
        ear = await on(self.database.loop, self.log.bell.ear(self.thread_id))
        newest: Heard | None = None
        while True:
            busy = await standing_of(self.database, self.thread_id)  # first: what is told is read
            told = await self.log.read(self.thread_id, self.after)
            for each in told:
                self.after, newest = each.id, each
                yield each
            if newest and len(told) < MOST and await self._is_end(newest):
                return
            if not told and not busy:
                yield Heard(self.after, (await self._stop()).to_dict())
                return
            if not told:
                await on(self.database.loop, ear.news(LOOK))

    def __iter__(self) -> Iterator[Heard]:
        """Yield the same on a thread that may wait."""
        events = aiter(self)

        async def step() -> Heard | None:
            return await anext(events, None)

        try:
            while heard := run(step()):
                yield heard
        finally:
            run(_closed(events))

    async def _is_end(self, newest: Heard) -> bool:
        """Tell whether nothing comes after an event: it ends its run, and no other is queued."""
        ends = newest.type == RunStopped.type
        return ends and await standing_of(self.database, self.thread_id) is None

    async def _stop(self) -> RunStopped:
        config = RunnableConfig(configurable={"thread_id": self.thread_id})
        snapshot = await self.graph.aget_state(config)
        replies = replies_of(self.graph.checkpointer)
        known = await replies.aaccepted(self.thread_id, open_questions(snapshot))
        return stop_of(snapshot, answered=known)


async def _closed(events: AsyncGenerator[Heard]) -> None:
    await events.aclose()
