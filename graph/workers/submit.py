"""Having a thread run by a worker: checked here and now, carried out there and then."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from daruma.graph.answered_once import aaddressed, answered_already
from daruma.graph.bridge import run
from daruma.graph.door import admit
from daruma.graph.kept_metadata import refuse_unkept_metadata
from daruma.graph.new_request import request
from daruma.graph.storage.postgres import Postgres
from daruma.graph.workers.jobs import queue as put
from daruma.graph.workers.reader import reader_on
from daruma.graph.workers.standing import standing_of
from daruma.graph.workers.submission import Submission

QUEUE: Final = "daruma"
"""The queue of applications, whose workers are given the graph."""


def submit(
    postgres: Postgres,
    given: Any,
    thread_id: str | None = None,
    *,
    queue: str = QUEUE,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """Queue what a graph could be invoked with, and return the thread's name: a new one for None.

    ``given`` is a request, ``Command(resume={id: reply})``, or None to go on. It is checked before
    it is queued, and a reply is on record then, the only one that counts; a worker on ``queue``
    carries it out, whatever becomes of this process. What is submitted for one thread is done in
    its order. ``metadata`` is kept with its checkpoints.

    Raises :class:`~daruma.graph.new_request.RequestRefused`,
    :class:`~daruma.state.interrupts.ReplyRefused` for an answer that does not fit its question, or
    comes second,
    :class:`~daruma.state.errors.StorageUnavailable` where nothing could be queued.
    """
    return run(asubmit(postgres, given, thread_id, queue=queue, metadata=metadata))


async def asubmit(
    postgres: Postgres,
    given: Any,
    thread_id: str | None = None,
    *,
    queue: str = QUEUE,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """Do the same, asynchronously."""
    refuse_unkept_metadata(RunnableConfig(metadata=dict(metadata or {})))
    thread_id = thread_id or uuid4().hex
    checked = await _checked(postgres, given, thread_id)
    submission = Submission(thread_id, checked, metadata or {})
    await _on_record(postgres, submission)
    await put(postgres.checkpointer.database, submission, queue)
    return thread_id


async def _checked(postgres: Postgres, given: Any, thread_id: str) -> Any:
    snapshot = await reader_on(postgres).aget_state(
        RunnableConfig(configurable={"thread_id": thread_id})
    )
    if isinstance(given, Command):
        return admit(await aaddressed(postgres.checkpointer, given, snapshot), snapshot)
    busy = await standing_of(postgres.checkpointer.database, thread_id)
    return _form_of(given, snapshot) if busy else admit(given, snapshot)


async def _on_record(postgres: Postgres, submission: Submission) -> None:
    """Put replies on record before they are queued: who comes second hears of it at once."""
    replies, thread = submission.replies, submission.thread_id
    if replies and not await postgres.checkpointer.replies.aaccept(thread, replies):
        raise answered_already(replies, thread)


def _form_of(given: Any, snapshot: StateSnapshot) -> Any:
    """Check what waits for a thread's turn: how the thread stands then is not known yet."""
    return given and request(given, known=snapshot.values.get("messages", ()))
