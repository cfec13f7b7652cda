"""What a thread is to be run with elsewhere, and the graph and database for it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import message_to_dict, messages_from_dict
from langgraph.types import Command

from daruma.graph.build import build_graph
from daruma.graph.requests import RequestRefused
from daruma.graph.run import Machine
from daruma.graph.storage import Database, EventLog, Postgres, PostgresSaver
from daruma.state.errors import DarumaError
from daruma.state.settings import Settings

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


def shared_database(graph: Machine) -> Database:
    """Return the database of a graph. Raises :class:`NotShared`."""
    if not isinstance(graph.checkpointer, PostgresSaver):
        raise NotShared("workers need Postgres: build_graph(..., persistence=pg)")
    return graph.checkpointer.database


def log_of(graph: Machine) -> EventLog:
    """Return where the events of a graph's threads are kept. Raises :class:`NotShared`."""
    shared_database(graph)
    saver: Any = graph.checkpointer
    log: EventLog = saver.events
    return log


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
        """Return it as JSON-able values. Raises ``RequestRefused`` for what is not JSON."""
        told: dict[str, Any] = {"thread_id": self.thread_id, "name": self.name}
        told |= {"kept": dict(self.kept), "tokens": self.tokens}
        if isinstance(self.given, Command):
            told["replies"] = dict(self.replies)
        elif self.given is not None:
            messages = [message_to_dict(message) for message in self.given["messages"]]
            told["request"] = {**self.given, "messages": messages}
        try:
            json.dumps(told, allow_nan=False, ensure_ascii=False).encode()
        except (TypeError, ValueError) as error:
            raise RequestRefused(f"what is not JSON can not be queued: {error}") from None
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
