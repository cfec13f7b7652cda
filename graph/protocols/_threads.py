"""Threads as clients of a protocol work with them: found, run, and described."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.errors import closing
from daruma.graph.follow import stop_of
from daruma.graph.requests import NoSuchThread, open_questions
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres
from daruma.graph.workers import GraphFactory, kept_with, reader_on
from daruma.state.events import PhaseCompleted, PhaseFailed, PhaseStarted, PlanProposed, RunStopped
from daruma.state.interrupts import kind_of, reply_form, summary_of


@dataclass(frozen=True)
class ClientThreads:
    """The threads that a client gets at: those that commands and clients began in its folder.

    A thread runs under the settings that it was begun with, and a client gives it none (SE-03).
    ``keep`` returns what a new thread of a folder keeps of them, and raises where they can not be
    used; ``graph_of`` makes a thread's graph of that. ``new_name`` names a thread.
    """

    postgres: Postgres
    graph_of: GraphFactory
    keep: Callable[[str], dict[str, Any]]
    new_name: Callable[[], str]

    @property
    def reader(self) -> Machine:
        """A graph that only looks at threads."""
        return reader_on(self.postgres)

    async def find(self, thread: str, folder: str) -> StateSnapshot | None:
        """Return where a thread stands; None for a new one.

        Raises :class:`~daruma.graph.requests.NoSuchThread` for one of another folder, or of a
        program: its graph is not here.
        """
        snapshot = await self.reader.aget_state(config_of(thread))
        if snapshot.created_at is None:
            return None
        if not _is_begun_in(folder, snapshot):
            raise NoSuchThread(f"there is no thread {thread!r} that was begun in {folder}")
        return snapshot

    async def known(self, thread: str, folder: str) -> StateSnapshot:
        """Return where a thread stands. Raises :class:`~daruma.graph.requests.NoSuchThread`."""
        if (snapshot := await self.find(thread, folder)) is None:
            raise NoSuchThread(f"there is no thread {thread!r}")
        return snapshot

    async def run(self, thread: str, folder: str, given: Any) -> AsyncGenerator[tuple[str, Any]]:
        """Run a thread; yield its events (``custom``) and what its nodes returned (``updates``)."""
        snapshot = await self.find(thread, folder)
        kept = kept_with(snapshot) if snapshot else await asyncio.to_thread(self.keep, folder)
        graph = await self.graph_of(kept, folder)
        config = config_of(thread) | {"metadata": kept}
        async with closing(graph.astream(given, config, stream_mode=["custom", "updates"])) as told:
            async for mode, part in told:
                yield mode, part

    async def stop(self, thread: str, folder: str) -> RunStopped:
        """Return where a thread stands while nothing runs it."""
        snapshot = await self.known(thread, folder)
        replies = self.postgres.checkpointer.replies
        return stop_of(snapshot, answered=await replies.find(thread, open_questions(snapshot)))


def _is_begun_in(folder: str, snapshot: StateSnapshot) -> bool:
    """Whether a command or a client began a thread, and its task works in the folder."""
    task, kept = snapshot.values.get("task"), kept_with(snapshot)
    where = task.workspace if task else kept.get("daruma_folder")
    same = where is not None and Path(where).resolve() == Path(folder).resolve()
    return same and "daruma_folder" in kept


def config_of(thread: str) -> RunnableConfig:
    """Return the config of a thread."""
    return RunnableConfig(configurable={"thread_id": thread})


def request_of(text: str, folder: str, mode: str | None) -> dict[str, Any]:
    """Return a new request of a client: a mode is all that it chooses."""
    return {"messages": [("user", text)], "workspace": folder, "mode": mode}


# --- A plan as its phases come and go.


@dataclass
class PlanView:
    """The titles and states of a plan's phases, by their ids."""

    phases: dict[str, tuple[str, str]]

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take what an event says of the plan; say whether it says anything."""
        type_ = str(event.get("type"))
        if type_ == PlanProposed.type:
            self.phases = _phases(event["plan"])
            return True
        if type_ not in _PHASE_EVENTS:
            return False
        title, _ = self.phases.get(event["phase_id"], (event.get("title", ""), ""))
        self.phases[event["phase_id"]] = title, _PHASE_EVENTS[type_]
        return True

    @classmethod
    def of(cls, snapshot: StateSnapshot | None) -> Self:
        """Return the plan of a thread, if it has one."""
        plan = snapshot.values.get("plan") if snapshot else None
        return cls(_phases(plan.to_dict()) if plan else {})


def _phases(plan: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {each["id"]: (each["title"], each["status"]) for each in plan["phases"]}


_PHASE_EVENTS: Final = {
    PhaseStarted.type: "running",
    PhaseCompleted.type: "completed",
    PhaseFailed.type: "failed",
}


# --- Where a thread stands, as a client is told.


def status_of(stop: RunStopped) -> str:
    """Return ``waiting``, ``unfinished`` or a result's headline, which tells what was checked."""
    done = stop.outcome == "done" and stop.result
    return str(done["headline"]) if done else stop.outcome


def question_text(value: object) -> str:
    """Return all that is to be said of a question before it is answered."""
    asked = value.get("action_requests", ()) if isinstance(value, Mapping) else ()
    return "\n\n".join(each["description"] for each in asked) or summary_of(value)


def describe_question(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an open question with its id, and the form of its reply.

    Each approval is given by the digest of what was shown (TL-13), and for this call (SE-03).
    """
    value = asked["value"]
    approvals = value.get("approvals", ()) if isinstance(value, Mapping) else ()
    named = [{key: each[key] for key in ("approval_id", "digest", "shown")} for each in approvals]
    return {
        "id": asked["id"],
        "kind": kind_of(value),
        "text": question_text(value),
        "reply": reply_form({**value, "approvals": named} if named else value),
        **({"approvals": named} if named else {}),
        **({"options": value["options"]} if "options" in value else {}),
    }
