"""What a run tells those who follow it: events, server-sent events, HTTP status."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from daruma.graph.requests import NoSuchThread, NotNow, RequestRefused, open_questions
from daruma.graph.standing import Standing, standing_of
from daruma.graph.storage import EVENTS_AT_ONCE, Database, EventLog, StoredEvent, replies_of
from daruma.graph.sync import iterate, on
from daruma.graph.timeline import Moment
from daruma.state.errors import Busy, DarumaError, StorageUnavailable, ThreadIdRefused
from daruma.state.events import RunStopped
from daruma.state.interrupts import AnsweredAlready, ReplyRefused

# --- Where a thread stands once nothing runs it, as the event that ends what its followers hear.


def stop_of(
    snapshot: StateSnapshot, *, answered: Collection[str] = (), run: str = "", error: str = ""
) -> RunStopped:
    """Return it; ``answered`` are the ids of questions whose replies are on record already."""
    questions = open_questions(snapshot).items()
    asked = tuple({"id": id_, "value": value} for id_, value in questions if id_ not in answered)
    result = snapshot.values.get("result")
    if error:
        outcome = "failed"
    elif asked:
        outcome = "waiting"
    else:
        outcome = "done" if result is not None and not snapshot.tasks else "unfinished"
    told = result.to_dict() if result is not None else None
    return RunStopped(outcome=outcome, result=told, questions=asked, error=error, run=run)


@dataclass(frozen=True)
class Look:
    """Where a thread stands: ``status`` is queued, running, waiting, a result's, or unfinished.

    ``questions`` have an ``id``, which the reply goes by, and a ``value``; ``events`` are those of
    its newest run, each with its ``type``, as far as they are kept; ``timeline`` is what happened
    on the thread, from its record. ``error`` is why a worker could not run it.
    """

    thread: str
    status: str
    goal: str
    questions: tuple[dict[str, Any], ...]
    result: dict[str, Any] | None
    error: str
    events: tuple[dict[str, Any], ...]
    timeline: tuple[Moment, ...]

    @classmethod
    def of(
        cls,
        thread: str,
        snapshot: StateSnapshot,
        standing: Standing | None,
        answered: Collection[str],
        events: Iterable[dict[str, Any]],
        timeline: tuple[Moment, ...],
    ) -> Self:
        """Put it together."""
        stop = stop_of(snapshot, answered=answered, error=standing.error if standing else "")
        busy, task = standing is not None and standing.is_busy, snapshot.values.get("task")
        done = stop.result["status"] if stop.result else "unfinished"
        status = standing.what if standing and busy else stop.outcome
        return cls(
            thread=thread,
            status=done if status == "done" else status,
            goal=task.goal if task else (standing.request if standing else ""),
            questions=() if busy else stop.questions,
            result=None if busy else stop.result,
            error=stop.error,
            events=tuple(events),
            timeline=timeline,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able values."""
        return asdict(self)


# --- Following a thread that somebody else runs: its events as they come, from whichever process.

LOOK: Final = 2.0
"""Seconds after which a follower looks by himself: a process that was killed says nothing."""


@dataclass
class Following:
    """The events of a thread from one place on, until it stops; for ``async for`` and ``for``.

    The last one is ``run_stopped``: then nobody works on the thread, or is to. Who goes away
    disturbs nothing, and can go on ``after`` the id of the last event that he had.
    """

    graph: CompiledStateGraph[Any, Any, Any, Any]
    database: Database
    log: EventLog
    thread_id: str
    after: int

    async def __aiter__(self) -> AsyncGenerator[StoredEvent]:
        """Yield the events as they come."""
        ear = await on(self.database.loop, self.log.bell.ear(self.thread_id))
        newest: StoredEvent | None = None
        said: list[StoredEvent] = []
        while True:
            busy = await self._is_busy()  # first: what is told is read
            told = await self.log.read(self.thread_id, self.after)
            said += [self.log.said(self.thread_id, each) for each in ear.take()]
            for each in told:
                while said and said[0].id < each.id:
                    yield StoredEvent(self.after, said.pop(0).event)
                self.after, newest = each.id, each
                yield each
            while said and said[0].id <= self.after:
                yield StoredEvent(self.after, said.pop(0).event)
            ends = newest is not None and newest.type == RunStopped.type
            if ends and len(told) < EVENTS_AT_ONCE and not await self._is_busy():
                return
            if not told and not busy:
                config = RunnableConfig(configurable={"thread_id": self.thread_id})
                snapshot = await self.graph.aget_state(config)
                replies = replies_of(self.graph.checkpointer)
                known = await replies.find(self.thread_id, open_questions(snapshot))
                yield StoredEvent(self.after, stop_of(snapshot, answered=known).to_dict())
                return
            if not told:
                await on(self.database.loop, ear.news(LOOK))

    def __iter__(self) -> Iterator[StoredEvent]:
        """Yield the same on a thread that may wait."""
        return iterate(aiter(self))

    async def _is_busy(self) -> bool:
        return await standing_of(self.database, self.thread_id) is not None


# --- Events of a thread in the form that browsers listen to: server-sent events.

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
            yield render_event(heard)
            coming = asyncio.ensure_future(anext(told, None))
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await coming
        await told.aclose()


def render_event(heard: StoredEvent) -> str:
    """Return one event as it is sent."""
    data = json.dumps(heard.event, ensure_ascii=False, default=str)
    return f"id: {heard.id}\nevent: {heard.type}\ndata: {data}\n\n"


# --- Which status an HTTP server answers with where Daruma refuses something, or can not do it now.

_STATUS: Final[tuple[tuple[type[DarumaError], int], ...]] = (
    (NoSuchThread, 404),
    (NotNow, 409),
    (AnsweredAlready, 409),
    (Busy, 409),
    (RequestRefused, 422),
    (ThreadIdRefused, 422),
    (ReplyRefused, 422),
    (StorageUnavailable, 503),
)


def status_of(error: DarumaError) -> int:
    """Return 404 for no such thread, 409 for what does not fit how a thread stands or comes second.

    422 is for a request or a reply that is none, 503 for a lost database, 500 for all else.
    """
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
