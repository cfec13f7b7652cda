"""What ``langgraph.json`` names: the graph of the development server, who may call that, and what
it keeps threads and memories in: Daruma's own Postgres, with its fences.

What an inbox replies, and whom a reply goes to that names no question, is decided here, too.
"""

import asyncio
import json
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Final, Literal, Self, cast

from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Command, StateSnapshot
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.errors import closing
from daruma.graph.follow import ListedOrigins, status_of
from daruma.graph.history import newest, start_of, without_start
from daruma.graph.requests import SERVER_MARK, open_questions, thread_id_of
from daruma.graph.run import Machine
from daruma.graph.scenario import ShownModel, shown
from daruma.graph.storage import (
    Hold,
    Leases,
    PostgresSaver,
    PostgresStore,
    aopen_postgres,
    ledger_of,
)
from daruma.state.channels import refuse_misfits
from daruma.state.errors import DarumaError, ThreadBusy
from daruma.state.interrupts import ReplyRefused, is_question, read_reply
from daruma.state.settings import (
    Settings,
    SettingsError,
    loosening_changes,
    merge_settings,
    name_changes,
)
from daruma.tools.calls import results_for_unanswered
from daruma.tools.threads import to_thread

# --- Reading what an inbox replies: LangChain's decisions, turned into the reply that a question
# has.
#
# An inbox names nothing of what it decides on: its decisions stand in the order of the requests.
# What they are about is taken from the question itself, so the ids and digests are those that were
# shown.


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Approve(_Decision):
    type: Literal["approve"]


class Reject(_Decision):
    type: Literal["reject"]
    message: str | None = None


class Respond(_Decision):
    type: Literal["respond"]
    message: str = Field(pattern=r"\S")


class Action(_Decision):
    name: str
    args: dict[str, Any]


class Edit(_Decision):
    type: Literal["edit"]
    edited_action: Action


Decision = Annotated[Approve | Reject | Respond | Edit, Field(discriminator="type")]
_DECISIONS: Final = TypeAdapter(list[Decision])
_FORM: Final = '{"decisions": [{"type": "approve"}]}, one for each request, in their order'


def is_of_an_inbox(reply: object) -> bool:
    """Whether a reply has the form of an inbox: decisions that have a ``type``."""
    decisions = reply.get("decisions") if isinstance(reply, Mapping) else None
    if not isinstance(decisions, Sequence) or isinstance(decisions, str):
        return False
    return any(isinstance(each, Mapping) and "type" in each for each in decisions)


def from_inbox(question: Mapping[str, Any], reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply that decisions of an inbox come to.

    Raises :class:`~daruma.state.interrupts.ReplyRefused`: for decisions that are none, that are
    more or fewer than the requests, or that the question does not allow.
    """
    try:
        decisions = _DECISIONS.validate_python(reply["decisions"])
    except ValidationError:
        raise ReplyRefused(f"a reply of an inbox has the form {_FORM}") from None
    requests = question.get("action_requests", ())
    if len(reply) > 1 or len(decisions) != len(requests):
        raise ReplyRefused(
            f"{len(requests)} decisions are asked for, and {len(decisions)} were given: {_FORM}"
        )
    for decision, request in zip(decisions, requests, strict=True):
        _check(decision, request, question)
    return _REPLIES[question["type"]](question, decisions)


def _check(decision: Decision, request: Mapping[str, Any], question: Mapping[str, Any]) -> None:
    allowed = {
        each["action_name"]: each["allowed_decisions"] for each in question["review_configs"]
    }[request["name"]]
    if decision.type not in allowed:
        raise ReplyRefused(f"{request['name']} can be decided by {', '.join(allowed)}")
    if isinstance(decision, Edit) and decision.edited_action.name != request["name"]:
        raise ReplyRefused(
            f"an edit keeps to {request['name']!r}, and does not make it another action"
        )


def _edited(decision: Edit, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return edited values; forms give text back for what was none."""
    shown = request["args"]
    return {
        name: _as_before(value, shown.get(name, value))
        for name, value in decision.edited_action.args.items()
    }


def _as_before(value: Any, shown: Any) -> Any:
    if not isinstance(value, str) or isinstance(shown, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _to_a_plan(question: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    (decision,) = decisions
    own = {"spec_review_id": question["spec_review_id"]}
    if isinstance(decision, Edit):
        plan = _edited(decision, question["action_requests"][0])
        return {"decision": "edit", "plan": plan, **own}
    if isinstance(decision, Reject):
        return {"decision": "reject", "feedback": decision.message or "", **own}
    return {"decision": "confirm", **own}


def _to_approvals(question: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    decided: list[dict[str, Any]] = []
    asked = zip(question["approvals"], question["action_requests"], decisions, strict=True)
    for approval, request, decision in asked:
        own: dict[str, Any] = {"decision": "approve"}
        if isinstance(decision, Edit):
            own = {"decision": "edit", "args": _edited(decision, request)}
        elif isinstance(decision, Reject):
            own = {"decision": "deny", "reason": decision.message or ""}
        named = {"approval_id": approval["approval_id"], "digest": approval["digest"]}
        decided.append({**named, **own})
    return {"decisions": decided}


def _to_a_recovery(_: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    (decision,) = decisions
    if isinstance(decision, Respond):
        return {"decision": "instruct", "text": decision.message}
    if isinstance(decision, Reject):
        return {"decision": "deny", "reason": decision.message or ""}
    return {"decision": "approve"}


def _to_a_question(_: Mapping[str, Any], decisions: Sequence[Decision]) -> dict[str, Any]:
    (decision,) = decisions
    if isinstance(decision, Edit):
        return {"answer": decision.edited_action.args.get("answer", "")}
    return {"answer": decision.message if isinstance(decision, Respond) else ""}


_REPLIES: Final[Mapping[str, Callable[[Mapping[str, Any], Sequence[Decision]], dict[str, Any]]]] = {
    "spec_review_request": _to_a_plan,
    "approval_request": _to_approvals,
    "recovery_request": _to_a_recovery,
    "question": _to_a_question,
}


# --- Whom a reply goes to that names no question: to the one that is open, if it can mean no other.
#
# LangGraph gives such a reply to whatever asks next. Clients of its server send them all the same,
# so here one is addressed to the question that it was shown with, or refused.

_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Sent:
    """When and how a reply was sent, as far as that is known.

    ``at`` is Unix time in seconds. ``seen`` says that the client has named the newest checkpoint,
    so that it showed what is open now. ``approved_before`` says that an approval was given or
    denied on this thread before, which a reply that names nothing may have been meant for.
    """

    at: float | None
    seen: bool = False
    approved_before: bool = False


def addressed(resume: object, pending: Mapping[str, Any], sent: Sent) -> dict[str, Any]:
    """Return replies by the ids of their questions, in the form that our door takes.

    Raises :class:`~daruma.state.interrupts.ReplyRefused` for one that may be meant for another
    question than the one that is open.
    """
    if by_ids(resume):
        return {id_: _read(pending.get(id_), reply) for id_, reply in _items(resume)}
    if len(pending) != 1:
        raise ReplyRefused(
            f"{len(pending)} questions are open ({', '.join(pending)}): a reply names its question,"
            " {id: reply}"
            if pending
            else "nothing is open on this thread: it was answered before, or asked nothing"
        )
    ((id_, value),) = pending.items()
    reply = _read(value, resume)
    if is_question(value):
        read_reply(value, reply)
        _refuse_stale(id_, value, resume, sent)
    return {id_: reply}


def by_ids(resume: object) -> bool:
    """Whether a reply names its questions by their ids, as LangGraph forms these."""
    keys = [key for key, _ in _items(resume)]
    return bool(keys) and all(isinstance(key, str) and _ID.fullmatch(key) for key in keys)


def _items(resume: object) -> Collection[tuple[Any, Any]]:
    return resume.items() if isinstance(resume, Mapping) else ()


def _read(value: Any, reply: Any) -> Any:
    if not is_question(value):
        return reply
    if value["type"] == "question" and isinstance(reply, str):
        return {"answer": reply}
    return from_inbox(value, reply) if is_of_an_inbox(reply) else reply


def _refuse_stale(id_: str, value: Mapping[str, Any], resume: object, sent: Sent) -> None:
    names = False  # whether it names what it is about; `read_reply` has compared the names
    if isinstance(resume, Mapping):
        of_calls = value["type"] == "approval_request"
        names = not is_of_an_inbox(resume) if of_calls else resume.get("spec_review_id") is not None
    if sent.seen or names:
        return
    if sent.at is None or sent.at < value.get("asked_at", 0):
        raise ReplyRefused(
            f"this reply was sent before the open question was asked: look at it, then answer it, "
            f"by its id: {{{id_!r}: reply}}"
        )
    if value["type"] == "approval_request" and sent.approved_before:
        raise ReplyRefused(
            "other calls were approved or denied on this thread before, and this reply does not "
            f"say which it means: answer by id, {{{id_!r}: reply}}, name approval_id and digest, "
            "or send the checkpoint that you show"
        )
    if value.get("amounts") and not value["id"].endswith(":budget:0"):
        raise ReplyRefused(
            "a spent budget was asked about on this thread before, and this reply does not say "
            f"which question it answers: answer by id, {{{id_!r}: reply}}, or send the checkpoint "
            "that you show"
        )


# --- Errors as the server passes them on.


class Told(DarumaError, ValueError):
    """Raised in the place of any error of ours, with its one line.

    The server tells a client no more than "An internal error occurred" of an error that is none of
    Python's own.
    """


# --- A run's settings: what the client gave, over those of the folder that the server is in.


def settings_of(own: Settings, given: object) -> Settings:
    """Return the settings of a run: what a client or an assistant has set can only tighten (SE-03).

    Raises :class:`~daruma.state.settings.SettingsError`, naming the keys that would weaken.
    """
    if not given:
        return own
    if isinstance(given, Mapping):
        given = merge_settings(own.model_dump(exclude_unset=True), given)
    wanted = given if isinstance(given, Settings) else Settings.model_validate(given)
    if refused := loosening_changes(own, wanted):
        raise SettingsError(
            f"a client can only make settings stricter than the server has them: "
            f"{name_changes(refused)}; change them there: what build_graph has for settings, "
            "else daruma.yaml or DARUMA_*"
        )
    return wanted


def without_settings(config: RunnableConfig | None) -> RunnableConfig | None:
    """Return a config without the server's copy of the settings: it would be kept in clear."""
    if not config:
        return config
    kept = {
        key: value
        for key, value in config.get("configurable", {}).items()
        if key not in Settings.model_fields and key not in ("__context_provided__", SERVER_MARK)
    }
    return RunnableConfig(**{**config, "configurable": kept})


_TRACE: Final = "daruma_traceparent"


def without_origin(config: RunnableConfig) -> RunnableConfig:
    """Return a config without what commands and workers alone tell of how they began a thread.

    `daruma resume` takes its model, and the folder of its settings, from there (SE-03). The trace
    of a run is its own.
    """
    kept: Any = dict(config)
    for part in kept.keys() & {"metadata", "configurable"}:
        told = (kept[part] or {}).items()
        kept[part] = {k: v for k, v in told if k == _TRACE or not k.startswith("daruma_")}
    return cast("RunnableConfig", kept)


# --- Work that a newer request takes the place of, as the server's clients have it do.
#
# Our own door refuses a request on a thread with unfinished work, so that nothing is lost. A person
# in a chat who writes on means to be heard: what has come of the work is kept, the rest is told.

CUT: Final = (
    "Cut short by a newer request: it may have run in part. Look before you rely on it, or do it "
    "again."
)


def what_stays(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what is written when work is put aside: each call gets its result, or is told cut."""
    ran = (each.result for each in snapshot.tasks if each.name in ("tool", "look"))
    written = (each.get("messages", ()) for each in ran if isinstance(each, Mapping))
    done: list[AnyMessage] = [message for messages in written for message in messages]
    history = [*snapshot.values.get("messages", ()), *done]
    cut = [each.model_copy(update={"content": CUT}) for each in results_for_unanswered(history)]
    return {"messages": [*done, *cut], "calls": ()}


# --- The compiled graph as the development server runs it.

REQUESTED_AT = "__request_start_time_ms__"
"""Where the server notes when a run was asked for."""


class StudioMachine(Machine):
    """Daruma's graph for a server whose clients know less of a thread than a program does.

    Over the plain graph it takes replies that name no question, as far as they can mean but one,
    and the decisions of a chat client's inbox; settings that a run does not give are the graph's;
    the server's default of writing behind the run's back is replaced by ours; errors of ours reach
    the client with their text; and ``plays`` an example where no model is set.
    """

    plays: bool = False

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        try:
            given, own = options.get("context"), (config or {}).get("configurable", {})
            if left_out := self.sections.left_out - own.keys():
                given = {**(given or {}), **dict.fromkeys(sorted(left_out))}  # refused by name
            settings = settings_of(self.settings, given)
            # The server says "async" where the client has said nothing: each step is written.
            behind = options.get("durability") == "async" and self.checkpointer
            durability = "sync" if behind else options.get("durability")
            options |= {"context": settings, "durability": durability}
            config = without_settings(config)
            if isinstance(input, Command):
                input, config = await self._answer(input, config)  # noqa: A001 - LangGraph's name
            elif isinstance(input, Mapping):
                if self.plays:
                    input = await to_thread(shown, input)  # noqa: A001 - it copies files
                await self._put_aside(config)
            async with closing(super().astream(input, config, **options)) as parts:
                async for part in parts:
                    yield part
        except DarumaError as error:
            raise Told(f"{type(error).__name__}: {error}") from error

    async def _put_aside(self, config: RunnableConfig | None) -> None:
        """End what a thread was at, where a request comes in its place."""
        if not self._remembers(config) or start_of(self._thread(config)):
            return
        thread = RunnableConfig(configurable={"thread_id": self._thread_id(config)})
        snapshot = await self.aget_state(thread)
        if snapshot.tasks and not open_questions(snapshot) and not snapshot.interrupts:
            # Outside of the run: LangGraph goes on from a checkpoint of the same run, unasked.
            ending = self.aupdate_state(thread, what_stays(snapshot), as_node="finish")
            await asyncio.create_task(ending, context=Context())

    async def _answer(
        self, given: Command[Any], config: RunnableConfig | None
    ) -> tuple[Command[Any], RunnableConfig | None]:
        """Return a reply by the id of its question, and where on the thread it is given."""
        if given.resume is None or not self._remembers(config):
            return given, config
        thread = self._thread(config)
        shown = thread["configurable"].get("checkpoint_id")
        snapshot = await self.aget_state(newest(thread))
        if shown and shown != snapshot.config["configurable"].get("checkpoint_id"):
            if not by_ids(given.resume):
                raise ReplyRefused("the thread has gone on since what this reply answers was shown")
            return given, config
        milliseconds = thread["configurable"].get(REQUESTED_AT)
        at = milliseconds / 1000 if milliseconds else None
        replies = ledger_of(self.checkpointer).replies
        before = await replies.has_decisions(thread_id_of(snapshot))
        sent = Sent(at, seen=bool(shown), approved_before=before)
        resume = addressed(given.resume, open_questions(snapshot), sent)
        return replace(given, resume=resume), without_start(config)


# --- Leases for a server that keeps the runs of a thread apart itself, but for a moment at an end.

SECONDS: Final = 10.0
"""How long a thread is waited for: a run that is cancelled kills its commands first."""

_BETWEEN: Final = 0.05


@dataclass(frozen=True)
class PatientLeases:
    """Leases that are waited for. The server takes a run back, and begins another, as one ends."""

    leases: Leases
    seconds: float = SECONDS

    def take(self, thread_id: str) -> Hold:
        return self.leases.take(thread_id)

    async def atake(self, thread_id: str) -> Hold:
        until = time.monotonic() + self.seconds
        while True:
            try:
                return await self.leases.atake(thread_id)
            except ThreadBusy:
                if time.monotonic() >= until:
                    raise
            await asyncio.sleep(_BETWEEN)

    def give_back(self, hold: Hold) -> None:
        self.leases.give_back(hold)

    async def agive_back(self, hold: Hold) -> None:
        await self.leases.agive_back(hold)


# --- The checkpointer as the development server uses it: deleting a thread keeps nobody waiting.

LOG: Final = logging.getLogger("daruma.studio")


class ServerSaver(PostgresSaver):
    """A saver whose deletions go on beside their caller; who reads the thread waits for them.

    The server remembers a thread's place in its list while it awaits the deletion. Where two
    overlap, it takes the wrong thread from that list, and ends a stateless run without an answer.
    """

    _deleting: dict[str, Future[None]]

    @classmethod
    def over(cls, saver: PostgresSaver) -> Self:
        """Make the server's form of a saver."""
        own = cls.__new__(cls)
        own.__dict__.update(saver.__dict__, _deleting={})
        return own

    @override
    async def aput(self, config: RunnableConfig, *kept: Any, **named: Any) -> RunnableConfig:
        return await super().aput(without_origin(config), *kept, **named)

    @override
    async def adelete_thread(self, thread_id: str) -> None:
        name = str(thread_id)
        going = asyncio.run_coroutine_threadsafe(super().adelete_thread(name), self.loop)
        self._deleting[name] = going
        going.add_done_callback(lambda ended: self._ended(name, ended))

    @override
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        if going := self._deleting.get(str(config["configurable"].get("thread_id"))):
            await asyncio.wait([asyncio.wrap_future(going)])
        return await super().aget_tuple(config)

    async def all_deleted(self) -> None:
        """Wait for what is being deleted."""
        if going := [asyncio.wrap_future(each) for each in [*self._deleting.values()]]:
            await asyncio.wait(going)

    def _ended(self, name: str, ended: "Future[Any]") -> None:
        if self._deleting.get(name) is ended:
            del self._deleting[name]
        if not ended.cancelled() and (error := ended.exception()):
            LOG.warning(f"thread {name!r} is not deleted: {error}")


# --- What the server keeps threads and memories in: Daruma's own Postgres, with its fences.


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpointer for as long as the server runs.

    It is that of ``DARUMA_POSTGRES_URL``, else of the embedded server.
    """
    async with aopen_postgres() as postgres:
        saver = ServerSaver.over(postgres.checkpointer.expecting(refuse_misfits))
        yield saver.leasing(PatientLeases(saver.leases))
        await saver.all_deleted()


@asynccontextmanager
async def store() -> AsyncIterator[PostgresStore]:
    """Open the store beside it; with ``llm.embedding_model`` it finds by meaning, too."""
    settings = await asyncio.to_thread(Settings.load)
    async with aopen_postgres() as postgres:
        yield await asyncio.to_thread(postgres.store_for, settings.llm)


# --- The graph, and who may call it.


async def graph() -> StudioMachine:
    """Return the graph of ``langgraph dev`` (FA-02), built once, from the settings of this folder.

    With no model in them it plays a shipped example, so that there is something to look at.
    """
    return await asyncio.to_thread(_built)


@cache
def _built() -> StudioMachine:
    settings = Settings.load().with_a_person()
    if settings.llm.model:
        return StudioMachine.over(build_graph(settings=settings))
    return StudioMachine.over(build_graph(ShownModel(), settings=settings), plays=True)


Machine.served = StudioMachine


_HTTP: Final = json.loads(os.environ.get("LANGGRAPH_HTTP") or "{}")
"""The section ``http`` of ``langgraph.json``, as the server hands it on."""

if "LANGSERVE_GRAPHS" in os.environ and not _HTTP.get("disable_store"):  # SE-03
    raise Told(
        "clients of this server could write what tasks recall: write "
        '"disable_store": true under "http" in langgraph.json, as the one that ships has'
    )


def _told(_: Request, error: Any) -> JSONResponse:
    """Answer an error of ours outside of a run, such as a refused edit of the state."""
    return JSONResponse({"detail": str(error)}, status_of(error))


app = Starlette(
    middleware=[Middleware(ListedOrigins, (_HTTP.get("cors") or {}).get("allow_origins") or ())],
    exception_handlers={DarumaError: _told},
)
"""The server puts its own routes behind this: pages of other origins start nothing (SE-03)."""
