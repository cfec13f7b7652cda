"""What may enter the machine: a new request, an answer to an open question, or going on.

All that LangGraph accepts silently and then gets wrong is refused here before a run begins, so
that nothing is lost.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from langgraph.types import Command, StateSnapshot

from daruma.graph.new_request import NoSuchThread, NotNow, RequestRefused, request
from daruma.state.interrupts import ReplyRefused, is_question, read_reply
from daruma.tools.calls.parse import unstorable
from daruma.tools.threads import in_thread

_SECRET = re.compile(r"(?i)(?:^|_)(?:api_?key|token|secret|password|passwd|credentials?)$")

_TAKES_TIME = frozenset({"workspace", "continuity"})
"""What of a request is not read in less time than a thread takes to wake."""


def admit(given: Any, snapshot: StateSnapshot | None) -> Any:
    """Check what a run is started with, and return it in the form that the machine stores.

    ``snapshot`` is the thread as it stands, None where nothing is remembered. Raises
    :class:`~daruma.graph.new_request.RequestRefused`, or
    :class:`~daruma.state.interrupts.ReplyRefused` for an answer that does not fit its question.
    """
    if given is None or isinstance(given, Command):
        if snapshot is not None and snapshot.created_at is None:
            raise NoSuchThread(f"there is no thread {thread_id_of(snapshot)!r} to go on with")
        return given if given is None else _answered(given, snapshot)
    if snapshot is not None:
        _check_idle(snapshot)
    return request(given, known=snapshot.values.get("messages", ()) if snapshot else ())


async def aadmit(given: Any, snapshot: StateSnapshot | None) -> Any:
    """Do the same, asynchronously: in a thread where a folder is looked at, or much is read."""
    looks = isinstance(given, Mapping) and not _TAKES_TIME.isdisjoint(given)
    return await in_thread(admit, given, snapshot) if looks else admit(given, snapshot)


def _check_idle(snapshot: StateSnapshot) -> None:
    if snapshot.interrupts:
        waits_for = ", ".join(_type_of(interrupt.value) for interrupt in snapshot.interrupts)
        raise NotNow(
            f"thread {thread_id_of(snapshot)!r} waits for an answer ({waits_for}): "
            "answer it first, or use another thread"
        )
    if snapshot.tasks:
        raise NotNow(
            f"thread {thread_id_of(snapshot)!r} has unfinished work: resume it first, "
            "or use another thread"
        )


def _answered(command: Command[Any], snapshot: StateSnapshot | None) -> Command[Any]:
    if command.goto:
        raise RequestRefused(f"going to {command.goto!r} is not possible: only the table leads on")
    if command.update is not None or command.resume is None:
        raise RequestRefused("a command can only answer: Command(resume={id: reply})")
    if snapshot is None:
        raise RequestRefused("an answer needs a thread: build the graph with persistence")
    for value, reply in _matched(command.resume, snapshot):
        if is_question(value):  # a tool may ask in its own words
            _check_reply(value, reply)
    return command


def _check_reply(value: Mapping[str, Any], reply: object) -> None:
    read_reply(value, reply)
    if said := _unkept(reply):
        raise ReplyRefused(f"the reply can not be kept: {said}")


def _unkept(reply: object) -> str | None:
    try:
        json.dumps(reply)
    except (TypeError, ValueError, RecursionError):
        return "it is not JSON"
    return unstorable(reply)


def _matched(replies: object, snapshot: StateSnapshot) -> list[tuple[Any, Any]]:
    """Pair each reply with the open question that it goes to, by id."""
    pending = open_questions(snapshot)
    if not pending:
        answered = (
            "; what shows here was answered before: fork first" if snapshot.interrupts else ""
        )
        raise NotNow(f"nothing is open on thread {thread_id_of(snapshot)!r}{answered}")
    if not isinstance(replies, Mapping) or not replies or not pending.keys() >= replies.keys():
        raise NotNow(
            "answers go by the id of their question, Command(resume={id: reply}); "
            f"open on thread {thread_id_of(snapshot)!r}: {', '.join(pending)}"
        )
    return [(pending[interrupt_id], reply) for interrupt_id, reply in replies.items()]


def open_questions(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return the values of the questions that nobody has answered yet, by their ids."""
    # An earlier checkpoint still shows what was answered; LangGraph would take the old answer.
    open_tasks = [task for task in snapshot.tasks if task.result is None]
    return {each.id: each.value for task in open_tasks for each in task.interrupts}


def _type_of(value: Any) -> str:
    return str(value["type"]) if is_question(value) else "a question of a tool"


def refuse_secrets(configurable: Mapping[str, Any]) -> None:
    """Refuse secrets in ``configurable``: LangGraph stores it in clear with every checkpoint."""
    for key, value in configurable.items():
        if isinstance(value, str) and _SECRET.search(key):
            raise RequestRefused(
                f"configurable[{key!r}] would be stored in clear with every checkpoint: "
                "give secrets to the model or tool itself, or in the environment"
            )


def refuse_unkept_id(configurable: Mapping[str, Any]) -> None:
    """Refuse a thread's id that no database keeps as it is: with a NUL, or half a character."""
    thread_id = str(configurable.get("thread_id", ""))
    if "\0" in thread_id or unstorable(thread_id):
        raise RequestRefused(
            f"the thread id {thread_id[:100]!r} can not be stored: take letters and digits"
        )


def thread_id_of(snapshot: StateSnapshot) -> str:
    """Return the id of the thread that a snapshot is of."""
    return str(snapshot.config.get("configurable", {}).get("thread_id"))
