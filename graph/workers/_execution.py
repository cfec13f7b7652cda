"""What a thread is run with elsewhere, carrying out one job, parking reviews, telling of both."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from daruma.graph.build import build_graph
from daruma.graph.errors import closing
from daruma.graph.learning import Ended
from daruma.graph.notify import notify
from daruma.graph.requests import (
    PARK,
    RequestRefused,
    is_review,
    is_unfinished,
    open_questions,
    overdue,
    stale_ids,
)
from daruma.graph.run import Machine
from daruma.graph.storage import (
    REVIEWED,
    Database,
    EventLog,
    Postgres,
    PostgresSaver,
    athread_held,
    is_said,
    ledger_of,
    workspace_of,
)
from daruma.graph.sync import run
from daruma.state.channels import State
from daruma.state.errors import Busy, DamagedState, DarumaError, StorageUnavailable
from daruma.state.events import ModelAttemptFailed, ModelCallCompleted, ModelText
from daruma.state.interrupts import ReplyRefused, is_question, request_event
from daruma.state.settings import Settings
from daruma.tools.text import mask_keys, without_keys

# --- How often workers look at what: all times in seconds, all patterns in cron's six fields.


@dataclass(frozen=True)
class Pace:
    """The times of a worker.

    It shows a sign of life each ``heartbeat``; one that has shown none for ``stalled`` is taken for
    dead, and its jobs are given to others. It looks for jobs each ``poll`` even if nobody tells it
    of any, and waits for a connection for ``connect``. What is put off waits for ``first_wait``,
    then for twice as long each time. Jobs that run when it is stopped have ``grace`` to end by
    themselves. ``rescue`` and ``sweep`` say when dead workers, and reviews whose deadline has
    passed, are looked for.
    """

    heartbeat: float = 10.0
    stalled: float = 30.0
    poll: float = 5.0
    connect: float = 10.0
    first_wait: float = 1.0
    grace: float = 10.0
    rescue: str = "* * * * * */10"
    sweep: str = "* * * * * 0"


# --- The database that a graph shares with workers elsewhere.


class NotShared(DarumaError):
    """Raised for a graph that keeps its threads where no other process can get at them."""


def shared_saver(graph: Machine) -> PostgresSaver:
    """Return the checkpointer of a graph, with its database. Raises :class:`NotShared`."""
    if not isinstance(graph.checkpointer, PostgresSaver):
        raise NotShared("workers need Postgres: build_graph(..., persistence=pg)")
    return graph.checkpointer


# --- A graph that only looks at threads: it has no model, no tools, and settings that never matter.


def reader_on(postgres: Postgres) -> Machine:
    """Return it; it is made once for a database that is open, and goes with it."""
    kept = postgres.checkpointer.__dict__
    if "reader" not in kept:
        kept["reader"] = build_graph(settings=Settings(), persistence=postgres)
    reader: Machine = kept["reader"]
    return reader


# --- What a thread is to be run with by some other process, in the form that is queued: JSON.
#
# A submission can be carried out twice, as nobody can tell how far a worker came that has died: its
# name is kept with every checkpoint that it makes, and its request's messages have their ids
# already.

SUBMISSION: Final = "daruma_submission"
"""Where the name of a submission is kept in the metadata of checkpoints."""


@dataclass(frozen=True)
class Submission:
    """A thread and what it is run with: a request, replies, or None to go on.

    ``kept`` is metadata for the thread's checkpoints, in clear. With ``tokens``, who follows the
    run hears the words of models as they come.
    """

    thread_id: str
    given: Any
    kept: Mapping[str, Any] = field(default_factory=dict)
    tokens: bool = False
    name: str = field(default_factory=lambda: uuid4().hex)

    @property
    def metadata(self) -> dict[str, Any]:
        """Return what its checkpoints keep of it."""
        return {**self.kept, SUBMISSION: self.name}

    @property
    def replies(self) -> Mapping[str, Any]:
        """Return the replies by the ids of their questions; none for anything else."""
        replies: Any = self.given.resume if isinstance(self.given, Command) else {}
        return dict(replies)

    @property
    def message_id(self) -> str | None:
        """Return the id of the message that a request ends with."""
        return self.given["messages"][-1].id if isinstance(self.given, Mapping) else None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values. Raises ``RequestRefused`` for what no queue holds."""
        told: dict[str, Any] = {"thread_id": self.thread_id, "name": self.name}
        told |= {"kept": dict(self.kept), "tokens": self.tokens}
        if isinstance(self.given, Command):
            told["replies"] = dict(self.replies)
        elif self.given is not None:
            messages = [message_to_dict(message) for message in self.given["messages"]]
            told["request"] = {**self.given, "messages": messages}
        try:
            text = json.dumps(told, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise RequestRefused(f"what is not JSON can not be queued: {error}") from None
        if r"\u0000" in text.replace(r"\\", ""):  # no text that only reads so
            raise RequestRefused("a NUL character can not be queued: leave it out")
        return told

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Submission":
        """Read back what :meth:`to_json` has returned."""
        given: Any = told.get("request")
        if given:
            given = {**given, "messages": messages_from_dict(given["messages"])}
        elif "replies" in told:
            given = Command(resume=told["replies"])
        return cls(told["thread_id"], given, told["kept"], told["tokens"], told["name"])


# --- Telling what a job's run tells to those who follow its thread, beside the run: it never waits.

LOG: Final = logging.getLogger("daruma.worker")

_TOGETHER: Final = 0.1
"""Seconds in which the words of a model are gathered before they are told."""

_LAST_WORDS: Final = 2.0
"""Seconds that a job waits, at its end, for what it has told to be kept."""


class Announcing:
    """Keeps the events of one run; what comes while some are written is written next, at once."""

    def __init__(self, log: EventLog, thread_id: str, run: str) -> None:
        self._log, self._thread_id, self._run = log, thread_id, run
        self._told: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self._over = False

    def tell(self, event: object) -> None:
        """Tell of an event; what an application's tool streams in a form of its own is left out."""
        with suppress(TypeError, ValueError, RecursionError):  # it is not JSON
            if isinstance(event, Mapping) and json.dumps(event, default=str):
                self._told.append(dict(event))
                self._news.set()

    @classmethod
    @asynccontextmanager
    async def of(cls, log: EventLog, thread_id: str, run: str) -> "AsyncIterator[Announcing]":
        """Yield it for as long as a run lasts."""
        announcing = cls(log, thread_id, run)
        writing = asyncio.create_task(announcing._write())
        try:
            yield announcing
        finally:
            announcing._over = True
            announcing._news.set()
            await asyncio.wait([writing], timeout=_LAST_WORDS)
            writing.cancel()

    async def _write(self) -> None:
        last = 0
        while not (self._over and not self._told):
            await self._news.wait()
            self._news.clear()
            if not self._over and all(map(is_said, self._told)):
                await asyncio.sleep(_TOGETHER)
            told, self._told = join_texts(self._told, over=self._over)
            try:
                if told:
                    last = await self._log.write(self._thread_id, self._run, told, last)
            except StorageUnavailable as error:  # who follows sees the end all the same
                LOG.warning(f"thread {self._thread_id!r}: events are lost: {error}")


_OF_A_WORD: Final = "".join(map(chr, range(33, 127)))
"""What keys are made of."""


def join_texts(
    told: Sequence[dict[str, Any]], *, over: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Join the words of each answer, keys masked; return what is told, and what is held back.

    Held back is the last word of an answer that goes on: it may be half of a key (SE-08). What came
    before stands with it as ``before``: it may tell that what comes is one.
    """
    texts: dict[tuple[Any, ...], dict[str, Any]] = {}
    joined: list[dict[str, Any]] = []
    for event in told:
        if is_said(event):
            name = tuple(event.get(key) for key in ("member", "node", "call", "attempt"))
            known = texts.get(name, {"text": "", "before": ""})
            texts[name] = {**known, **event, "text": known["text"] + event["text"]}
        else:
            ends = event.get("type") in (ModelCallCompleted.type, ModelAttemptFailed.type)
            of_it = (event.get("member"), event.get("node"))
            ended = [name for name in texts if ends and name[:2] == of_it]
            joined += [each for name in ended for each in _masked(texts.pop(name))]
            joined.append(event)
    held = []
    for event in texts.values():
        whole, before = event["text"], event["before"]
        words = whole if over else whole.rstrip(_OF_A_WORD)
        joined += _masked({**event, "text": words})
        held += [] if over else [{**event, "text": whole[len(words) :], "before": before + words}]
    return joined, held


def _masked(event: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the event for the words that are new; none where all of them belong to a key."""
    before = event.pop("before")
    known, whole = without_keys(before), without_keys(before + event["text"])
    pairs = enumerate(zip(known, whole, strict=False))
    told = next((at for at, (a, b) in pairs if a != b), len(known))
    text = whole[told:]
    return [mask_keys({**event, "text": text})] if text else []


# --- What a worker says of its jobs: a line each.


def ended(thread_id: str, snapshot: StateSnapshot) -> str:
    """Say where a thread stands after its job."""
    result = snapshot.values.get("result")
    if result is not None:
        return f"thread {thread_id!r}: {result.headline}"
    return f"thread {thread_id!r}: {'waits for an answer' if snapshot.interrupts else 'unfinished'}"


def reason_of(error: BaseException) -> str:
    """Return an error's text in one line, without any key."""
    return " ".join(without_keys(str(error)).split())


# --- Carrying out one job on a graph: begun where it was not begun yet, gone on with where it was.

DONE: Final = object()
"""Stands for a submission of which nothing is left to do."""


async def carry_out(
    graph: Machine, submission: Submission, tell: Callable[[object], None] = lambda _: None
) -> StateSnapshot:
    """Run a thread with what was submitted for it, and return where it stands then.

    ``tell`` is given what the run tells meanwhile. Raises what the run does: a task that fails is
    no error.
    """
    config = _config(submission.thread_id)
    async with _holding(graph, submission.thread_id) as own:
        snapshot = await own.aget_state(config)
        asked = {*submission.replies, *open_questions(snapshot)}
        known = await ledger_of(graph.checkpointer).replies.find(submission.thread_id, asked)
        given = rest_of(submission, snapshot, known, time.time())
        if given is not DONE:
            config = config | {"metadata": submission.metadata}
            modes = ["custom", *(["messages"] if submission.tokens else [])]
            async with closing(own.astream(given, config, stream_mode=modes)) as told:
                async for mode, part in told:
                    if event := part if mode == "custom" else _words_of(*part):
                        tell(event)
        else:
            # Nobody can tell whether whoever ended a task came to handing it over.
            state = State(**snapshot.values)
            if state.result and state.result.task_id == state.task_id:
                ended = Ended(state, state.result.status, graph.settings, graph.store)
                graph.evolution.hand_over(ended)
            for each in snapshot.interrupts:  # who was killed may not have come to telling of it
                if is_question(each.value) and each.id in open_questions(snapshot):
                    tell(request_event(each).to_dict())
            workspace = workspace_of(None, snapshot)
            notify(graph.checkpointer, graph.settings.notify, workspace, submission.thread_id)
        return await own.aget_state(config)


def _words_of(message: BaseMessage, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the event for a chunk of an answer; None for messages that are recorded."""
    if "daruma_call" not in metadata or not message.text:
        return None
    return ModelText(
        node=metadata["daruma_role"],
        call=metadata["daruma_call"],
        attempt=metadata["daruma_attempt"],
        text=message.text,
        member=metadata.get("daruma_member", ""),
    ).to_dict()


def rest_of(
    submission: Submission, snapshot: StateSnapshot, known: Mapping[str, Any], now: float
) -> Any:
    """Return what the graph is to be invoked with, or ``DONE``.

    ``known`` are the replies on record for the questions that are open, and those that the
    submission answers. Raises :class:`~daruma.state.interrupts.ReplyRefused` for a reply to what
    somebody else has answered.
    """
    if not _is_begun(submission, snapshot, known):
        return submission.given
    answered = known.keys() & open_questions(snapshot).keys()
    return None if answered or is_unfinished(snapshot, now) else DONE


def _is_begun(submission: Submission, snapshot: StateSnapshot, known: Mapping[str, Any]) -> bool:
    if submission.message_id:
        ids = {message.id for message in snapshot.values.get("messages", ())}
        return submission.message_id in ids or _is_newest(submission, snapshot)
    if not submission.replies:
        return snapshot.created_at is not None
    answers = [known[id_] for id_ in submission.replies if id_ in known]
    if stale_ids(submission.given, snapshot) or not answers:
        return _is_newest(submission, snapshot)
    if any(known.get(id_) not in (reply, PARK) for id_, reply in submission.replies.items()):
        raise ReplyRefused(
            f"thread {submission.thread_id!r} was answered already: one reply counts, the first"
        )
    return True


def _is_newest(submission: Submission, snapshot: StateSnapshot) -> bool:
    return (snapshot.metadata or {}).get(SUBMISSION) == submission.name


async def park(graph: Machine, thread_id: str) -> bool:
    """Park a thread's review if its deadline has passed; return whether that was done here.

    Raises :class:`~daruma.state.errors.ThreadBusy` where somebody else is about to.
    """
    config = _config(thread_id)
    async with _holding(graph, thread_id) as own:
        snapshot = await own.aget_state(config)
        if not overdue(snapshot, time.time()):
            return False
        await own.ainvoke(None, config | {"metadata": kept_with(snapshot)})
        return True


def kept_with(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what a thread keeps of those who started it, to be kept on."""
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    return {key: value for key, value in metadata.items() if key.startswith("daruma_")}


@asynccontextmanager
async def _holding(graph: Machine, thread_id: str) -> AsyncIterator[Machine]:
    """Hold a thread from before it is looked at: what is decided then still holds."""
    async with athread_held(graph.checkpointer, thread_id) as saver:
        yield graph.copy({"checkpointer": saver, "holds": True})


def _config(thread_id: str) -> RunnableConfig:
    return RunnableConfig(configurable={"thread_id": thread_id})


# --- Parking the reviews whose deadline has passed, wherever they were begun (PL-03).

GraphFactory = Callable[[Mapping[str, Any], str | None], Awaitable[Machine]]
"""Makes the graph for a thread, of the metadata that it keeps, and for its workspace."""


def sweep(graph: Machine) -> list[str]:
    """Park all overdue reviews in a graph's database, and return the names of their threads.

    Any number of processes may do so at once: each review is parked by one of them.
    """
    return run(asweep(graph))


async def asweep(graph: Machine) -> list[str]:
    """Do the same, asynchronously."""
    return await swept(shared_saver(graph).database, graph, always(graph))


def always(graph: Machine) -> GraphFactory:
    """Have all threads run on one graph."""

    async def same(_kept: Mapping[str, Any], _workspace: str | None) -> Machine:
        return graph

    return same


async def swept(database: Database, reader: Machine, graph_of: GraphFactory) -> list[str]:
    """Park what is overdue, each thread on a graph of its own; ``reader`` looks at them."""
    reviewed = [row["thread_id"] for row in await database.statement(REVIEWED, {})]
    return [each for each in reviewed if await park_overdue(each, reader, graph_of)]


async def park_overdue(thread_id: str, reader: Machine, graph_of: GraphFactory) -> bool:
    """Park a thread's review if it is overdue; return whether that was done here."""
    config = _config(thread_id)
    with suppress(Busy, DamagedState):  # somebody goes on with it, or nobody can
        snapshot = await reader.aget_state(config)
        if overdue(snapshot, time.time()):
            graph = reader  # parking needs neither settings nor a model
            with suppress(DarumaError):
                graph = await graph_of(kept_with(snapshot), workspace_of(None, snapshot))
            return await park(graph, thread_id)
    return False


def deadline_of(snapshot: StateSnapshot) -> float | None:
    """Return when the open review of a thread is to be parked, in Unix seconds; None for never."""
    deadlines = [
        value["deadline"]
        for value in open_questions(snapshot).values()
        if is_review(value) and value["deadline"] is not None
    ]
    return min(deadlines, default=None)
