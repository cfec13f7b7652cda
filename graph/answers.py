"""One reply per question, parking, what is said to a task at work, and if there is any work."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from langgraph.types import Command, StateSnapshot

from daruma.graph.requests import NoSuchThread, NotNow, RequestRefused, open_questions, thread_id_of
from daruma.graph.standing import is_worked_on
from daruma.graph.storage import ledger_of
from daruma.state.interrupts import AnsweredAlready
from daruma.state.messages import is_request
from daruma.state.steering import SteeringMessage
from daruma.state.task import Task
from daruma.state.text import is_blank, storable_text
from daruma.tools.text import mask_keys

# --- Plans that nobody confirmed in time: parked by whoever comes along, taken up by a late reply.
#
# Nobody waits for the deadline: a question costs nothing while it is open (DU-02, PL-03).

PARK: Final = {"decision": "park"}
"""The reply that the end of the deadline gives."""


def overdue(snapshot: StateSnapshot, now: float) -> dict[str, Any]:
    """Return the reply that parks the open review of a thread; none if it has time left (PL-03).

    Whoever comes next asks this: nothing runs, and nothing is held, until then (DU-02).
    ``now`` is Unix time in seconds.
    """
    return {
        id_: PARK
        for id_, value in open_questions(snapshot).items()
        if is_review(value) and value["deadline"] is not None and value["deadline"] < now
    }


def stale_ids(given: Any, snapshot: StateSnapshot) -> Collection[str]:
    """Return the ids in a reply that may be those of a review which was parked meanwhile."""
    if not isinstance(given, Command) or not isinstance(given.resume, Mapping):
        return ()
    pending = open_questions(snapshot)
    if len(given.resume) != 1 or not _parked_review(pending):
        return ()
    return [id_ for id_ in given.resume if id_ not in pending]


def _parked_review(pending: Mapping[str, Any]) -> str | None:
    parked = [id_ for id_, value in pending.items() if is_review(value) and value.get("parked")]
    return parked[0] if parked else None


def is_review(value: object) -> bool:
    """Tell whether a question is about a plan."""
    return isinstance(value, Mapping) and value.get("type") == "spec_review_request"


# --- One reply per question: what was admitted becomes what the run goes on with.


async def readdress_reply(checkpointer: Any, given: Any, snapshot: StateSnapshot) -> Any:
    """Address a reply to a plan that was parked meanwhile to the question as it is asked now."""
    if not (stale := stale_ids(given, snapshot)):
        return given
    accepted = await ledger_of(checkpointer).replies.find(thread_id_of(snapshot), stale)
    if list(accepted.values()) != [PARK]:
        return given
    (reply,) = given.resume.values()
    return Command(resume={_parked_review(open_questions(snapshot)): reply})


async def accept_reply(checkpointer: Any, admitted: Any, snapshot: StateSnapshot) -> Any:
    """Put a reply on record before its run begins; going on without one, take that of a killed run.

    Where the deadline of a review is over, going on parks its plan. Raises
    :class:`~daruma.state.interrupts.AnsweredAlready` for a question that was answered before.
    """
    # The questions that are answered, or may have been before a crash.
    ids: Collection[str] = open_questions(snapshot) if admitted is None else ()
    if isinstance(admitted, Command) and isinstance(admitted.resume, Mapping):
        ids = [*admitted.resume]
    if not ids:
        return admitted
    replies, thread = ledger_of(checkpointer).replies, thread_id_of(snapshot)
    if admitted is None:
        known, late = await replies.find(thread, ids), overdue(snapshot, time.time())
        accepted = known or late
        if late and not known and not await replies.accept(thread, late):
            accepted = await replies.find(thread, ids)
        return Command(resume=accepted) if accepted else None
    if not await replies.accept(thread, admitted.resume):
        raise answered_already(ids, thread)
    return admitted


def answered_already(ids: Collection[str], thread_id: str) -> AnsweredAlready:
    """Return what is raised for a second reply to a question."""
    return AnsweredAlready(
        f"thread {thread_id!r} was answered already ({', '.join(ids)}): one reply counts, the "
        "first; if its run has ended before its time, resume the thread to go on with that reply"
    )


# --- What a person says to a task at work: kept until its model's next request (FA-14).

LONGEST: Final = 20_000
"""Characters of one message."""


async def send(
    checkpointer: Any,
    thread_id: str,
    snapshot: StateSnapshot | None,
    text: str,
    *,
    stop: bool = False,
    goal: str | None = None,
) -> str:
    """Keep what is said to a thread's open task, as ``snapshot`` has it; return its id (FA-14).

    Raises :class:`~daruma.graph.requests.RequestRefused` for what is no message, for a thread that
    is not there, and where no task is open on it.
    """
    text, goal = _words("message", text), None if goal is None else _words("goal", goal)
    begun = snapshot if snapshot and snapshot.created_at else None
    stands = begun if begun and (begun.interrupts or begun.values.get("result") is None) else None
    if stands is None and not await is_worked_on(checkpointer, thread_id):
        if begun is None:
            raise NoSuchThread(f"there is no thread {thread_id!r}")
        raise NotNow(f"no task is open on thread {thread_id!r}: give it a new one")
    task: Task | None = stands.values.get("task") if stands else None
    messages = stands.values.get("messages", ()) if stands else ()
    newest = next((m.id for m in reversed(messages) if is_request(m, thread_id)), None)
    if task and task.request != newest:  # a newer request was not yet taken up
        task = None
    if task and task.mode == "team_collab":
        raise NotNow(f"a team is at work on thread {thread_id!r}: its members can be told nothing")
    message = SteeringMessage(
        id=uuid4().hex,
        text=text,
        at=time.time(),
        stop=stop,
        goal=goal or "",
        task_id=task.id if task else "",
    )
    if not await ledger_of(checkpointer).steering.send(thread_id, message):
        raise _too_much_waits(thread_id)
    return message.id


async def send_again(checkpointer: Any, thread_id: str, said: Sequence[SteeringMessage]) -> None:
    """Keep what a task was told, as it goes on from before that (FA-14). Raises as :func:`send`."""
    for each in said:
        if not await ledger_of(checkpointer).steering.send(thread_id, each):
            raise _too_much_waits(thread_id)


def _too_much_waits(thread_id: str) -> NotNow:
    return NotNow(f"too much waits to be told on thread {thread_id!r}: resume it first")


def _words(what: str, text: object) -> str:
    if not isinstance(text, str) or is_blank(text):
        raise RequestRefused(f"the {what} is empty: say it in words")
    if len(text) > LONGEST:
        raise RequestRefused(f"the {what} is longer than {LONGEST:,} characters: put it in a file")
    return str(mask_keys(storable_text(text.strip())))


# --- Whether a thread has something to go on with that needs nobody's answer.


def is_unfinished(snapshot: StateSnapshot, now: float) -> bool:
    """Tell whether ``invoke(None)`` would go on with a thread.

    There is work that was interrupted, a denied call to ask for again, or a review whose deadline
    has passed, which is parked. ``now`` is Unix time in seconds.
    """
    if overdue(snapshot, now):
        return True
    result = snapshot.values.get("result")
    if result is not None and result.status == "blocked":
        return True  # what was denied is asked for again
    # `next` is empty too where every node has run and only the step itself was not closed.
    return bool(snapshot.tasks and not snapshot.interrupts)
