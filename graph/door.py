"""What may enter the machine: a new request, an answer to an open question, or going on.

All that LangGraph accepts silently and then gets wrong is refused here before a run begins, so
that nothing is lost.
"""

import json
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4

from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
)
from langgraph.types import Command, StateSnapshot

from daruma.state.channels import Input
from daruma.state.data_dir import data_dir
from daruma.state.errors import DarumaError
from daruma.state.interrupts import is_question, read_reply
from daruma.state.mode import MODES, Mode
from daruma.tools.results import clean
from daruma.tools.storable_args import unstorable

_SECRET = re.compile(r"(?i)(?:^|_)(?:api_?key|token|secret|password|passwd|credentials?)$")


class RequestRefused(DarumaError):
    """Raised when what was given to the graph can not be run; nothing on the thread has changed."""


def admit(given: Any, snapshot: StateSnapshot | None) -> Any:
    """Check what a run is started with, and return it in the form that the machine stores.

    ``snapshot`` is the thread as it stands, None where nothing is remembered. Raises
    :class:`RequestRefused`, or :class:`~daruma.state.interrupts.ReplyRefused` for an answer that
    does not fit its question.
    """
    if given is None or isinstance(given, Command):
        if snapshot is not None and snapshot.created_at is None:
            raise RequestRefused(f"there is no thread {thread_id_of(snapshot)!r} to go on with")
        return given if given is None else _answered(given, snapshot)
    if snapshot is not None:
        _check_idle(snapshot)
    return request(given, known=snapshot.values.get("messages", ()) if snapshot else ())


def request(given: object, *, known: Sequence[AnyMessage] = ()) -> Input:
    """Check a new request: known keys, a known mode, a workspace that is there, a message.

    ``known`` are the messages of the thread: a new one does not take the place of one of them.
    """
    if not isinstance(given, Mapping):
        raise RequestRefused(f"a request is a dict with messages, not {type(given).__name__}")
    _check_keys(given)
    checked = Input(messages=_messages(given.get("messages"), known))
    if (mode := given.get("mode")) is not None:
        checked["mode"] = _mode(mode)
    if (workspace := given.get("workspace")) is not None:
        checked["workspace"] = _workspace(workspace)
    return checked


def _check_keys(given: Mapping[Any, Any]) -> None:
    known = get_type_hints(Input)
    for key in given:
        if key not in known:
            close = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise RequestRefused(f"unknown key {key!r} in the request; {hint}")


def _messages(given: Any, known: Sequence[AnyMessage]) -> list[AnyMessage]:
    if not given:
        raise RequestRefused('a request needs messages, such as [("user", "Make the tests pass")]')
    try:
        messages = convert_to_messages(given if isinstance(given, list) else [given])
    except (ValueError, NotImplementedError, TypeError) as error:
        raise RequestRefused(
            f"the messages can not be read: {str(error).splitlines()[0]}"
        ) from None
    if not isinstance(messages[-1], HumanMessage):
        raise RequestRefused("the last message of a request has to be the user's")
    taken = {message.id for message in known}
    return [_stored(message, taken) for message in messages]


def _stored(message: Any, taken: set[str | None]) -> Any:
    # The id is given here and not by the reducer, which must come to the same list in each replay.
    if isinstance(message, RemoveMessage):
        return message  # it means the message that has its id
    own = message.id if message.id not in taken else None
    changes = {"id": own or str(uuid4()), "content": _clean(message.content)}
    taken.add(changes["id"])
    return message.model_copy(update=changes)


def _clean(content: Any) -> Any:
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):
        return [_clean(part) for part in content]
    if isinstance(content, dict):
        return {key: _clean(value) for key, value in content.items()}
    return content


def _mode(given: object) -> Mode:
    for mode in MODES:
        if given == mode:
            return mode
    raise RequestRefused(f"unknown mode {given!r}; there are: {', '.join(MODES)}")


def _workspace(given: object) -> str:
    path = Path(str(given)).expanduser()
    try:
        there = str(given).strip() and path.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise RequestRefused(f"the workspace {str(given)!r} is not a folder that is there")
    if data_dir().resolve().is_relative_to(path.resolve()):
        raise RequestRefused(
            f"the workspace {str(given)!r} holds Daruma's own data ({data_dir()}): "
            "choose a folder below, or set DARUMA_DATA_DIR to another place"
        )
    return str(path.absolute())


def _check_idle(snapshot: StateSnapshot) -> None:
    if snapshot.interrupts:
        waits_for = ", ".join(_type_of(interrupt.value) for interrupt in snapshot.interrupts)
        raise RequestRefused(
            f"thread {thread_id_of(snapshot)!r} waits for an answer ({waits_for}): "
            "answer it first, or use another thread"
        )
    if snapshot.tasks:
        raise RequestRefused(
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
        raise RequestRefused(f"nothing is open on thread {thread_id_of(snapshot)!r}{answered}")
    if not isinstance(replies, Mapping) or not replies or not pending.keys() >= replies.keys():
        raise RequestRefused(
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


def thread_id_of(snapshot: StateSnapshot) -> str:
    """Return the id of the thread that a snapshot is of."""
    return str(snapshot.config.get("configurable", {}).get("thread_id"))
