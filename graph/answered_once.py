"""One reply per question: what was admitted becomes what the run goes on with."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from langgraph.types import Command, StateSnapshot

from daruma.graph.door import open_questions, thread_id_of
from daruma.graph.parking import overdue, readdressed, stale_ids
from daruma.graph.replies import replies_of
from daruma.state.interrupts import AnsweredAlready


def addressed(checkpointer: Any, given: Any, snapshot: StateSnapshot) -> Any:
    """Address a reply to a plan that was parked meanwhile to the question as it is asked now."""
    stale, thread = stale_ids(given, snapshot), thread_id_of(snapshot)
    if not stale:
        return given
    return readdressed(given, snapshot, replies_of(checkpointer).accepted(thread, stale))


async def aaddressed(checkpointer: Any, given: Any, snapshot: StateSnapshot) -> Any:
    """Do the same, asynchronously."""
    stale, thread = stale_ids(given, snapshot), thread_id_of(snapshot)
    if not stale:
        return given
    return readdressed(given, snapshot, await replies_of(checkpointer).aaccepted(thread, stale))


def once(checkpointer: Any, admitted: Any, snapshot: StateSnapshot) -> Any:
    """Put a reply on record before its run begins; going on without one, take that of a killed run.

    Where the deadline of a review is over, going on parks its plan. Raises
    :class:`~daruma.state.interrupts.AnsweredAlready` for a question that was answered before.
    """
    ids, thread = _concerned(admitted, snapshot), thread_id_of(snapshot)
    if not ids:
        return admitted
    replies = replies_of(checkpointer)
    if admitted is None:
        known, late = replies.accepted(thread, ids), overdue(snapshot, time.time())
        if known or not late or replies.accept(thread, late):
            return _resuming(known or late)
        return _resuming(replies.accepted(thread, ids))
    if not replies.accept(thread, admitted.resume):
        raise answered_already(ids, thread)
    return admitted


async def aonce(checkpointer: Any, admitted: Any, snapshot: StateSnapshot) -> Any:
    """Do the same, asynchronously."""
    ids, thread = _concerned(admitted, snapshot), thread_id_of(snapshot)
    if not ids:
        return admitted
    replies = replies_of(checkpointer)
    if admitted is None:
        known, late = await replies.aaccepted(thread, ids), overdue(snapshot, time.time())
        if known or not late or await replies.aaccept(thread, late):
            return _resuming(known or late)
        return _resuming(await replies.aaccepted(thread, ids))
    if not await replies.aaccept(thread, admitted.resume):
        raise answered_already(ids, thread)
    return admitted


def _concerned(admitted: Any, snapshot: StateSnapshot) -> Collection[str]:
    """Return the ids of the questions that are answered, or may have been before a crash."""
    if isinstance(admitted, Command):
        return list(admitted.resume) if isinstance(admitted.resume, Mapping) else ()
    return open_questions(snapshot) if admitted is None else ()


def _resuming(accepted: dict[str, Any]) -> Command[Any] | None:
    return Command(resume=accepted) if accepted else None


def answered_already(ids: Collection[str], thread_id: str) -> AnsweredAlready:
    """Return what is raised for a second reply to a question."""
    return AnsweredAlready(
        f"thread {thread_id!r} was answered already ({', '.join(ids)}): one reply counts, the "
        "first; if its run has ended before its time, resume the thread to go on with that reply"
    )
