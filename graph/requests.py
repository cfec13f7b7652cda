"""What enters the machine, checked before anything runs: requests, replies (one for each question),
and what is said to a task at work; reviews that are parked, and whether a thread has anything to go
on with.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from math import isfinite
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final, get_args
from uuid import uuid4

from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.types import Command, Durability, StateSnapshot, StateUpdate, StreamMode
from pydantic import ValidationError

from daruma.graph.fast_path import is_within
from daruma.graph.standing import is_worked_on
from daruma.graph.storage import ledger_of
from daruma.state.channels import Input, misfit_of
from daruma.state.conversation import continuity_of, to_snapshot
from daruma.state.data_dir import data_dir
from daruma.state.errors import DarumaError
from daruma.state.interrupts import AnsweredAlready, ReplyRefused, is_question, read_reply
from daruma.state.messages import is_request
from daruma.state.mode import MODES
from daruma.state.steering import SteeringMessage
from daruma.state.task import Task
from daruma.state.text import is_blank, storable_text, unkept_id, unstorable_part
from daruma.state.verification import read_rubric
from daruma.tools.text import mask_keys, note_env_file, read_live_values
from daruma.tools.threads import in_thread

# --- What a task may be started with, checked before anything runs.


class RequestRefused(DarumaError):
    """Raised when what was given to the graph can not be run; nothing on the thread has changed."""


class NoSuchThread(RequestRefused):
    """Raised when there is no thread of that name to go on with, or to look at."""


class NotNow(RequestRefused):
    """Raised for what does not fit how the thread stands: it waits, is unfinished, asks nothing."""


def request(given: object, *, known: Sequence[AnyMessage] = (), within: bool = False) -> Input:
    """Check a new request: known keys, a known mode, a workspace that is there, a message.

    ``known`` are the messages of the thread: a new one does not take the place of one of them.
    ``within`` says that it is the state of another graph: its own keys are left alone (FA-08).
    """
    if not within:
        return _request(given, known)
    if isinstance(given, Mapping):
        given = {key: given[key] for key in _KEYS if given.get(key)}
    elif hasattr(given, "messages"):  # a dataclass, or a model of Pydantic's
        given = {key: value for key in _KEYS if (value := getattr(given, key, None))}
    try:
        return _request(given, known, within=True)
    except RequestRefused as refused:
        raise RequestRefused(f"{refused}; {_OF_STATE}") from None


_KEYS: Final = tuple(Input.__annotations__)
_OF_STATE: Final = (
    "in another graph its messages, mode, workspace, rubric and continuity are the request: leave "
    "out what means something else there, by add_node(..., input_schema=...) or a node that calls "
    "this graph"
)


def _request(given: object, known: Sequence[AnyMessage], *, within: bool = False) -> Input:
    if not isinstance(given, Mapping):
        raise RequestRefused(f"a request is a dict with messages, not {type(given).__name__}")
    _check_keys(given)
    checked = Input(messages=_messages(given.get("messages"), known, within=within))
    if (mode := given.get("mode")) is not None:
        if mode not in MODES:
            raise RequestRefused(f"unknown mode {mode!r}; there are: {', '.join(MODES)}")
        checked["mode"] = mode
    if (workspace := given.get("workspace")) is not None:
        checked["workspace"] = _workspace(workspace)
    if (rubric := given.get("rubric")) is not None:
        try:
            checked["rubric"] = tuple(storable_text(each) for each in read_rubric(rubric))
        except ValueError as error:
            raise RequestRefused(f"the rubric can not be used: {error}") from None
    if (continuity := given.get("continuity")) is not None:
        if not isinstance(continuity, Mapping):
            raise RequestRefused(
                f"continuity is a dict, what the application kept of the conversation, "
                f"not {type(continuity).__name__}"
            )
        checked["continuity"] = to_snapshot(continuity_of(continuity))
    return mask_keys(checked)


def _check_keys(given: Mapping[Any, Any]) -> None:
    for key in given:
        if key not in _KEYS:
            close = get_close_matches(str(key), _KEYS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(_KEYS)}"
            raise RequestRefused(f"unknown key {key!r} in the request; {hint}")


def _messages(given: Any, known: Sequence[AnyMessage], *, within: bool) -> list[AnyMessage]:
    if not given:
        raise RequestRefused('a request needs messages, such as [("user", "Make the tests pass")]')
    try:
        messages = convert_to_messages(given if isinstance(given, list) else [given])
    except (ValueError, NotImplementedError, TypeError) as error:
        why = str(error).splitlines()[0]
        if isinstance(error, ValidationError):
            why = "{loc[0]}: {msg}".format(**error.errors()[0])
        raise RequestRefused(f"the messages can not be read: {why}") from None
    if within:  # what others said since stands behind what the user asked for
        if not any(isinstance(each, HumanMessage) for each in messages):
            raise RequestRefused("one of the messages of a request has to be the user's")
    elif not isinstance(messages[-1], HumanMessage):
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
        return storable_text(content)
    if isinstance(content, list):
        return [_clean(part) for part in content]
    if isinstance(content, dict):
        return {key: _clean(value) for key, value in content.items()}
    return content


def _workspace(given: object) -> str:
    path = Path(os.path.expanduser(str(given)))  # noqa: PTH111 - Path.expanduser raises without a home
    if why := _no_folder(path) if str(given).strip() else "it is empty":
        raise RequestRefused(
            f"the workspace {str(given)!r} is not a folder that is there ({why}): "
            "name a folder, or make it first"
        )
    if data_dir().resolve().is_relative_to(path.resolve()):
        raise RequestRefused(
            f"the workspace {str(given)!r} holds Daruma's own data ({data_dir()}): "
            "choose a folder below, or set DARUMA_DATA_DIR to another place"
        )
    return str(path.absolute())


def _no_folder(path: Path) -> str | None:
    """Say why nobody can work in a path, None if one can."""
    try:
        if not S_ISDIR(path.stat().st_mode):
            return "it is a file"
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None if os.access(path, os.R_OK | os.X_OK) else "it may not be entered"


# --- What may enter the machine: a new request, an answer to an open question, or going on.
#
# All that LangGraph accepts silently and then gets wrong is refused here before a run begins, so
# that nothing is lost.

_SECRET = re.compile(r"(?i)(?:^|_)(?:api_?key|token|secret|password|passwd|credentials?)$")

_TAKES_TIME = frozenset({"workspace", "continuity"})
"""What of a request is not read in less time than a thread takes to wake."""


async def admit(given: Any, snapshot: StateSnapshot | None, *, within: bool = False) -> Any:
    """Check what a run is started with, and return it in the form that the machine stores.

    ``snapshot`` is the thread as it stands, None where nothing is remembered; ``within`` says that
    the run is part of another graph's. What looks at a folder, or reads much, does so in a thread.
    Raises :class:`~daruma.graph.requests.RequestRefused`, or
    :class:`~daruma.state.interrupts.ReplyRefused` for an answer that does not fit its question.
    """
    task = snapshot.values.get("task") if snapshot else None
    asked = given.get("workspace") if isinstance(given, Mapping) else None
    folders = {str(asked or ""), str(task.workspace or "") if task else "", "."}
    await in_thread(_read_secrets, folders)
    looks = isinstance(given, Mapping) and not _TAKES_TIME.isdisjoint(given)
    admitted = partial(_admitted, given, snapshot, within=within)
    return await in_thread(admitted) if looks else admitted()


def _admitted(given: Any, snapshot: StateSnapshot | None, *, within: bool) -> Any:
    if given is None or isinstance(given, Command):
        if snapshot is not None and snapshot.created_at is None:
            raise NoSuchThread(f"there is no thread {thread_id_of(snapshot)!r} to go on with")
        if given is None and snapshot is None and not within:
            raise RequestRefused(f"there is nothing to go on with: {NO_THREADS}")
        return given if given is None else _answered(given, snapshot)
    if snapshot is not None:
        _check_idle(snapshot)
    known = snapshot.values.get("messages", ()) if snapshot else ()
    return request(given, known=known, within=within)


def _read_secrets(folders: Iterable[str]) -> None:
    """Read what is masked in all that a run stores and shows (SE-08)."""
    for folder in folders:
        note_env_file(folder)
    read_live_values()


def _check_idle(snapshot: StateSnapshot) -> None:
    if snapshot.interrupts:
        asked = [each.value for each in snapshot.interrupts]
        waits_for = ", ".join(
            str(value["type"]) if is_question(value) else "a question of a tool" for value in asked
        )
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
    return replace(command, resume=mask_keys(command.resume))


def _check_reply(value: Mapping[str, Any], reply: object) -> None:
    decisions = getattr(read_reply(value, reply), "decisions", ())
    try:
        json.dumps(reply)
        said = unstorable_part(reply)
    except (TypeError, ValueError, RecursionError):
        said = "it is not JSON"
    if said:
        raise ReplyRefused(f"the reply can not be kept: {said}")
    if any(mask_keys(each.args) != each.args for each in decisions):
        raise ReplyRefused(
            "the edit holds a key, which would be masked before it could run: "
            "put it into a file or variable of the workspace, and name that"
        )


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


def question_ids(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return the own ids of the open questions, by those of their interrupts."""
    return {id_: v["id"] for id_, v in open_questions(snapshot).items() if is_question(v)}


def refuse_secrets(configurable: Mapping[str, Any]) -> None:
    """Refuse secrets in ``configurable``: LangGraph stores it in clear with every checkpoint."""
    for key, value in configurable.items():
        if isinstance(value, str) and _SECRET.search(key):
            raise RequestRefused(
                f"configurable[{key!r}] would be stored in clear with every checkpoint: "
                "give secrets to the model or tool itself, or in the environment"
            )


def refuse_unkept_id(configurable: Mapping[str, Any]) -> None:
    """Refuse a thread's id that no database keeps as it is, no person can read, or holds a key."""
    thread_id = configurable.get("thread_id")
    said = unkept_id(thread_id) if "thread_id" in configurable else None
    if not said and mask_keys(str(thread_id)) != str(thread_id):
        said = f"the thread id {mask_keys(str(thread_id))!r} holds a key: take letters and digits"
    if said:
        raise RequestRefused(said)


def thread_id_of(snapshot: StateSnapshot) -> str:
    """Return the id of the thread that a snapshot is of."""
    return str(snapshot.config.get("configurable", {}).get("thread_id"))


# --- State that a person or Studio writes by hand: what could not be read back is refused before.


def check_updates(supersteps: Sequence[Sequence[tuple[Any, ...]]]) -> list[list[StateUpdate]]:
    """Return updates as the machine stores them.

    Raises :class:`~daruma.graph.requests.RequestRefused` for a value that is none of its
    channel's: reading it back would find the thread damaged.
    """
    return [[_check_update(StateUpdate(*update)) for update in updates] for updates in supersteps]


def _check_update(update: StateUpdate) -> StateUpdate:
    values = update.values
    if isinstance(values, str | bytes | int | float):
        raise RequestRefused(f"the state is changed by a dict, not {type(values).__name__}")
    if not isinstance(values, Mapping):
        return update  # nothing, or a form of LangGraph's own
    if "messages" in values:
        given = values["messages"]  # the reducer takes each part of what it is given for a message
        pair = isinstance(given, tuple) and all(isinstance(part, str) for part in given)
        alone = pair or isinstance(given, str | Mapping | BaseMessage)
        values = {**values, "messages": [given] if alone else given}
    if said := misfit_of(values):
        raise RequestRefused(f"the state can not be changed so: {said}")
    return update._replace(values=mask_keys(values))


# --- The forms in which LangGraph takes a config and options; others are a riddle there. Pure.

NO_THREADS: Final = "this graph keeps no threads: build it with persistence="

_NAMES_A_THREAD: Final = '{"configurable": {"thread_id": "..."}} names a thread'
_FORMS: Final[dict[str, tuple[Any, str]]] = {
    "configurable": (Mapping, "a dict"),
    "metadata": (Mapping, "a dict"),
    "tags": (list | tuple, "a list"),
    "recursion_limit": (int, "a whole number from 1 on"),
    "max_concurrency": (int, "a whole number from 1 on"),
}
_CHOICES: Final = {"stream_mode": get_args(StreamMode), "durability": get_args(Durability)}


SERVER_MARK: Final = "__after_seconds__"
"""LangGraph's server puts it into the config of each run, and takes it from no client."""


def is_served(config: RunnableConfig | None) -> bool:
    """Whether a run is one of LangGraph's server, and not a part of another graph's there."""
    given = config.get("configurable") if isinstance(config, Mapping) else None
    return isinstance(given, Mapping) and SERVER_MARK in given and not is_within(config)


def refuse_misfit(config: object) -> None:
    """Refuse a config that is none. Raises :class:`RequestRefused`."""
    if config is None:
        return
    if not isinstance(config, dict):
        raise RequestRefused(f"a config is a dict, not {type(config).__name__}: {_NAMES_A_THREAD}")
    for key in config.keys() & _FORMS:
        given, (form, name) = config[key], _FORMS[key]
        if given is not None and not (isinstance(given, form) and (form is not int or given > 0)):
            raise RequestRefused(f"{key!r} of a config is {name}, not {given!r:.100}")


def refuse_unknown(options: Mapping[str, Any]) -> None:
    """Refuse choices that LangGraph does not know, and ignores. Raises :class:`RequestRefused`."""
    for name in options.keys() & _CHOICES:
        given, known = options[name], _CHOICES[name]
        for each in given if isinstance(given, list | tuple | set) else [given]:
            if each is not None and each not in known:
                close = get_close_matches(str(each), known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known)}"
                raise RequestRefused(f"unknown {name} {each!r}; {hint}")


# --- What of a run's config is kept with every checkpoint in clear, and so must be storable. Pure.


def refuse_unkept_metadata(config: RunnableConfig) -> None:
    """Refuse texts and numbers that no row keeps as they are, in metadata and in ``configurable``.

    Only those are kept, and only by name: what is nested or live in a config is left out of a
    checkpoint by LangGraph. Raises :class:`~daruma.graph.requests.RequestRefused`.
    """
    told = ensure_config(config)  # also what the graph is called within
    for where in ("metadata", "configurable"):
        given: Any = told.get(where) or {}
        for name, value in given.items():
            if not isinstance(name, str):
                raise RequestRefused(
                    f"{where}[{name!r}] has no name to be kept by: take a text for it"
                )
            if said := _unkept_metadata(name) or _unkept_metadata(value):
                raise RequestRefused(
                    f"{where}[{name[:100]!r}] can not be stored with a checkpoint: {said}; "
                    "leave it out, or give it as plain text"
                )


def _unkept_metadata(value: object) -> str | None:
    if isinstance(value, float):
        return None if isfinite(value) else "it is no finite number"
    if isinstance(value, str):
        if mask_keys(value) != value:
            return "it holds a key"
        return "it holds a NUL character" if "\0" in value else unstorable_part(value)
    return None


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
    return is_question(value) and value["type"] == "spec_review_request"


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
