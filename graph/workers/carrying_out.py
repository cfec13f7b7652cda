"""Carrying out one job on a graph: begun where it was not begun yet, gone on with where it was."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from daruma.graph.compiled import Machine
from daruma.graph.door import open_questions
from daruma.graph.handing_over import Ended
from daruma.graph.held import athread_held
from daruma.graph.parking import PARK, overdue, stale_ids
from daruma.graph.raising import closing
from daruma.graph.replies import replies_of
from daruma.graph.unfinished import is_unfinished
from daruma.graph.workers.submission import SUBMISSION, Submission
from daruma.state.channels import State
from daruma.state.interrupts import ReplyRefused

DONE: Final = object()
"""Stands for a submission of which nothing is left to do."""


def untold(_: object) -> None:
    """Tell nobody."""


async def carry_out(
    graph: Machine, submission: Submission, tell: Callable[[object], None] = untold
) -> StateSnapshot:
    """Run a thread with what was submitted for it, and return where it stands then.

    ``tell`` is given what the run tells meanwhile. Raises what the run does: a task that fails is
    no error.
    """
    config = _config(submission.thread_id)
    async with _holding(graph, submission.thread_id) as own:
        snapshot = await own.aget_state(config)
        asked = {*submission.replies, *open_questions(snapshot)}
        known = await replies_of(graph.checkpointer).aaccepted(submission.thread_id, asked)
        given = rest_of(submission, snapshot, known, time.time())
        if given is not DONE:
            config = config | {"metadata": submission.metadata}
            async with closing(own.astream(given, config, stream_mode="custom")) as told:
                async for event in told:
                    tell(event)
        else:
            _hand_over(graph, snapshot)
        return await own.aget_state(config)


def _hand_over(graph: Machine, snapshot: StateSnapshot) -> None:
    """Have an ended task learned from, as nobody can tell whether whoever ended it came to that."""
    state = State(**snapshot.values)
    if state.result and state.result.task_id == state.task_id:
        graph.evolution.hand_over(Ended(state, state.result.status, graph.settings, graph.store))


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
    if _differ(submission.replies, known):
        raise ReplyRefused(
            f"thread {submission.thread_id!r} was answered already: one reply counts, the first"
        )
    return True


def _differ(replies: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return any(known.get(id_) not in (reply, PARK) for id_, reply in replies.items())


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
