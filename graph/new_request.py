"""What a task may be started with, checked before anything runs."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints
from uuid import uuid4

from langchain_core.messages import (
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
)

from daruma.state.channels import Input
from daruma.state.conversation import continuity_of, to_snapshot
from daruma.state.data_dir import data_dir
from daruma.state.errors import DarumaError
from daruma.state.mode import MODES, Mode
from daruma.tools.calls.results import clean


class RequestRefused(DarumaError):
    """Raised when what was given to the graph can not be run; nothing on the thread has changed."""


class NoSuchThread(RequestRefused):
    """Raised when there is no thread of that name to go on with, or to look at."""


class NotNow(RequestRefused):
    """Raised for what does not fit how the thread stands: it waits, is unfinished, asks nothing."""


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
    if (continuity := given.get("continuity")) is not None:
        checked["continuity"] = _continuity(continuity)
    return checked


def _continuity(given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise RequestRefused(
            f"continuity is a dict, what the application kept of the conversation, "
            f"not {type(given).__name__}"
        )
    return to_snapshot(continuity_of(given))


def _check_keys(given: Mapping[Any, Any]) -> None:
    known = _keys()
    for key in given:
        if key not in known:
            close = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise RequestRefused(f"unknown key {key!r} in the request; {hint}")


@cache
def _keys() -> dict[str, Any]:
    return get_type_hints(Input)


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
