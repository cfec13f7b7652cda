"""One reply per question: what was admitted becomes what the run goes on with."""

from collections.abc import Collection, Mapping
from typing import Any

from langgraph.types import Command, StateSnapshot

from daruma.graph.door import open_questions, thread_id_of
from daruma.graph.replies import replies_of
from daruma.state.interrupts import ReplyRefused


def once(checkpointer: Any, admitted: Any, snapshot: StateSnapshot) -> Any:
    """Put a reply on record before its run begins; going on without one, take that of a killed run.

    Raises :class:`~daruma.state.interrupts.ReplyRefused` for a question that was answered before.
    """
    ids, thread = _concerned(admitted, snapshot), thread_id_of(snapshot)
    if not ids:
        return admitted
    if admitted is None:
        return _resuming(replies_of(checkpointer).accepted(thread, ids))
    if not replies_of(checkpointer).accept(thread, admitted.resume):
        raise _answered_already(ids, thread)
    return admitted


async def aonce(checkpointer: Any, admitted: Any, snapshot: StateSnapshot) -> Any:
    """Do the same, asynchronously."""
    ids, thread = _concerned(admitted, snapshot), thread_id_of(snapshot)
    if not ids:
        return admitted
    if admitted is None:
        return _resuming(await replies_of(checkpointer).aaccepted(thread, ids))
    if not await replies_of(checkpointer).aaccept(thread, admitted.resume):
        raise _answered_already(ids, thread)
    return admitted


def _concerned(admitted: Any, snapshot: StateSnapshot) -> Collection[str]:
    """Return the ids of the questions that are answered, or may have been before a crash."""
    if isinstance(admitted, Command):
        return list(admitted.resume) if isinstance(admitted.resume, Mapping) else ()
    return open_questions(snapshot) if admitted is None else ()


def _resuming(accepted: dict[str, Any]) -> Command[Any] | None:
    return Command(resume=accepted) if accepted else None


def _answered_already(ids: Collection[str], thread_id: str) -> ReplyRefused:
    return ReplyRefused(
        f"thread {thread_id!r} was answered already ({', '.join(ids)}): one reply counts, the "
        "first; if its run has ended before its time, resume the thread to go on with that reply"
    )
