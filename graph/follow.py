"""What a run tells those who follow it, and HTTP: events as they come, statuses, who may call."""

import asyncio
import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    MutableMapping,
)
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from typing import Any, Final, Self
from urllib.parse import urlsplit

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from daruma.graph.requests import NoSuchThread, NotNow, RequestRefused, open_questions
from daruma.graph.standing import Standing, standing_of
from daruma.graph.storage import EVENTS_AT_ONCE, Database, EventLog, StoredEvent, ledger_of
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
    if asked:
        outcome = "waiting"
    elif error:
        outcome = "failed"
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
            busy = await standing_of(self.database, self.thread_id)  # first: what is told is read
            told = await self.log.read(self.thread_id, self.after)
            said += [self.log.said(self.thread_id, each) for each in ear.take()]
            for each in told:
                while said and said[0].id < each.id:
                    yield replace(said.pop(0), id=self.after)
                self.after, newest = each.id, each
                yield each
            while said and said[0].id <= self.after:
                yield replace(said.pop(0), id=self.after)
            ends = newest is not None and newest.type == RunStopped.type
            ends = ends and len(told) < EVENTS_AT_ONCE
            if ends and not await standing_of(self.database, self.thread_id):
                return
            if not told and not busy:
                config = RunnableConfig(configurable={"thread_id": self.thread_id})
                snapshot = await self.graph.aget_state(config)
                replies = ledger_of(self.graph.checkpointer).replies
                known = await replies.find(self.thread_id, open_questions(snapshot))
                yield StoredEvent(self.after, stop_of(snapshot, answered=known).to_dict())
                return
            if not told:
                await on(self.database.loop, ear.news(LOOK))

    def __iter__(self) -> Iterator[StoredEvent]:
        """Yield the same on a thread that may wait."""
        return iterate(aiter(self))


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


# --- Who may call a server of ours: programs on this machine, and pages of listed origins (SE-03).
#
# Any page that somebody looks at can send requests to a server on the same machine. CORS alone
# keeps it from reading the answers: what a request starts has begun by then.

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, _Receive, _Send], Awaitable[None]]

_WITHIN: Final = "/noauth"
"""Where LangGraph's server calls itself, within its process; no request from outside has it."""


class ListedOrigins:
    """ASGI middleware that refuses, with 403 and one line, what other pages have a browser send.

    ``origins`` are the pages that may call, such as ``https://app.example.org``; those of this
    machine may, too. The name that a request was sent to has to be this machine's, an address, or
    that of a listed origin: a page can have its own name point here.
    """

    def __init__(self, app: _App, origins: Collection[str] = ()) -> None:
        self.app = app
        self._origins = {each.rstrip("/").lower() for each in origins}
        self._hosts = {_host(each) for each in self._origins}

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        outside = not str(scope.get("root_path", "")).startswith(_WITHIN)
        said = self._refused(scope) if scope["type"] != "lifespan" and outside else None
        if said is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": said})
        else:
            body, kind = json.dumps({"error": said}).encode(), b"application/json"
            headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _refused(self, scope: _Scope) -> str | None:
        """Say why a request is refused; None for one that is not."""
        hosts = _values(scope, b"host")
        host = _host(f"//{hosts[0]}") if len(hosts) == 1 else ""
        known = host in self._hosts or _is_here(host) or _is_address(host)
        if not host or not known:
            return f"host {hosts!r:.200} is not listed: use localhost or an address, or list it"
        for origin in _values(scope, b"origin"):
            own = origin.partition("://")[2] == hosts[0]
            if not (own or origin in self._origins or _is_here(_host(origin))):
                return f"origin {origin!r:.200} may not call this server: it is not listed"
        return None


def _values(scope: _Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").lower() for key, value in scope["headers"] if key == name]


def _host(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return _is_address(host) and ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
