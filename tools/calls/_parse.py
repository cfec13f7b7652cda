"""The tool calls of a model's answer, in whichever way it made them. Pure."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from math import isfinite
from typing import Any, Final

from langchain_core.messages import AIMessage

from daruma.tools.calls._answer_text import written_calls
from daruma.tools.calls._notations import WrittenCall

# --- Which arguments can be kept in a checkpoint just as they are. Pure.

DEEPEST: Final = 100
"""Levels of lists and objects in each other: what stores them goes to some hundred."""
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The whole numbers that msgpack knows."""


def unstorable_part(value: Any, depth: int = 0) -> str | None:
    """Say what about a JSON value can not be stored unchanged; None if nothing."""
    if depth > DEEPEST:
        return f"it is nested more than {DEEPEST} levels deep"
    if isinstance(value, str):
        return None if _is_unicode(value) else "it holds half a character (a lone surrogate)"
    if isinstance(value, int) and not SMALLEST <= value <= LARGEST:
        return "it holds a whole number of more than 64 bits"
    if isinstance(value, float) and not isfinite(value):
        return "it holds a number that JSON does not have (NaN or Infinity)"
    if isinstance(value, dict):
        return _first((*value, *value.values()), depth)
    return _first(value, depth) if isinstance(value, list | tuple) else None


def _first(values: Any, depth: int) -> str | None:
    for value in values:
        if said := unstorable_part(value, depth + 1):
            return said
    return None


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


# --- The calls of a streamed answer as the model sent them, where they are not what was read. Pure.

SENT_CALLS_KEY: Final = "sent_calls"
"""Where an answer holds its calls as they were sent: `id`, `name`, and `args` as text."""


def as_sent(message: AIMessage) -> AIMessage:
    """Return an answer whose calls are those that were sent, if it holds them; else as it is.

    Read from a stream, LangChain completes arguments that were cut off: they must not run.
    """
    sent = message.additional_kwargs.get(SENT_CALLS_KEY)
    if sent is None:
        return message
    others = {k: v for k, v in message.additional_kwargs.items() if k != SENT_CALLS_KEY}
    changes = {
        "additional_kwargs": others,
        "tool_calls": [_decoded_call(call) for call in sent if is_object(call["args"])],
        "invalid_tool_calls": [_unreadable(call) for call in sent if not is_object(call["args"])],
    }
    return message.model_copy(update=changes)


def is_object(text: str) -> bool:
    """Whether a text is a JSON object, to its end. No text at all stands for no arguments."""
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except (ValueError, RecursionError):
        return False


def _decoded_call(call: Mapping[str, str]) -> dict[str, Any]:
    return {**call, "type": "tool_call", "args": json.loads(call["args"] or "{}")}


def _unreadable(call: Mapping[str, str]) -> dict[str, Any]:
    return {**call, "type": "invalid_tool_call", "error": None}


# --- The tool calls of a model's answer, in whichever way it made them. Pure.

_ID = re.compile(r"\w[\w.:|/+=-]{0,199}", re.ASCII)
"""What providers write. An approval goes by it on the command line, where ``*`` and ``--yes`` mean
something else."""


@dataclass(frozen=True)
class Call:
    """One call as the model made it; ``args`` is None where ``raw`` could not be read.

    ``doubt`` says why nobody may try to read it (TL-18).
    """

    id: str
    name: str
    args: dict[str, Any] | None
    raw: str
    doubt: str = ""


def with_text_calls(message: AIMessage, visible: Collection[str]) -> AIMessage:
    """Return an answer with the calls that it only wrote into its text as real ones (TL-18)."""
    message = as_sent(message)
    if message.tool_calls or message.invalid_tool_calls or not visible:
        return message
    written = written_calls(message.text, visible)
    if all(call.args is not None for call in written):
        changes: dict[str, Any] = {"tool_calls": [_native(call) for call in written]}
    else:  # one list keeps their order
        changes = {"invalid_tool_calls": [_unread(call) for call in written]}
    return message.model_copy(update=changes) if written else message


def _native(call: WrittenCall) -> dict[str, Any]:
    return {"type": "tool_call", "name": call.name, "args": call.args, "id": None}


_DOUBT: Final = "in doubt: "
"""How what LangChain has for errors begins where a call is in doubt."""


def _unread(call: WrittenCall) -> dict[str, Any]:
    error = _DOUBT + call.doubt if call.doubt else None
    raw = call.raw or "{}"
    return {"type": "invalid_tool_call", "name": call.name, "args": raw, "id": None, "error": error}


def with_own_ids(message: AIMessage, message_id: str) -> AIMessage:
    """Return a model's message under an id of ours, every call in it with an id that is its own.

    Servers repeat ids from one answer to the next, and within one: a history keyed by them would
    lose messages. An id that a person could not name safely is not kept.
    """
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    seen: set[str] = set()
    free = (name for n in count() if (name := f"call_{n}") not in {c["id"] for c in calls})

    def named(call: dict[str, Any]) -> dict[str, Any]:
        own = call.get("id") or ""
        own = own if _ID.fullmatch(own) and own not in seen else next(free)
        seen.add(own)
        return {**call, "id": own}

    readable = [named(dict(call)) for call in message.tool_calls]
    unreadable = [named(dict(call)) for call in message.invalid_tool_calls]
    bad = [call for call in readable if unstorable_part(call["args"])]
    changes = {
        "id": message_id,
        "tool_calls": [call for call in readable if call not in bad],
        "invalid_tool_calls": [*unreadable, *map(_as_text, bad)],
    }
    return message.model_copy(update=changes)


def _as_text(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call whose arguments can not be stored as one that was not read."""
    try:
        text = json.dumps(call["args"])
    except RecursionError:
        text = ""
    return {**call, "type": "invalid_tool_call", "args": text, "error": None}


def calls_of(message: AIMessage) -> tuple[Call, ...]:
    """Return the calls in the order in which the model made them, readable or not."""
    readable = [_readable_call(dict(call)) for call in message.tool_calls]
    unreadable = [_unreadable_call(dict(call)) for call in message.invalid_tool_calls]
    if not readable or not unreadable:
        return (*readable, *unreadable)
    return tuple(_in_order(message, readable, unreadable))


def _in_order(message: AIMessage, readable: list[Call], unreadable: list[Call]) -> Iterator[Call]:
    # LangChain keeps the two kinds apart; only what the provider sent tells how they were mixed.
    for sent in _as_sent(message):
        if unreadable and sent == (unreadable[0].name, unreadable[0].raw):
            yield unreadable.pop(0)
        elif readable:
            yield readable.pop(0)
    yield from (*readable, *unreadable)


def _as_sent(message: AIMessage) -> list[tuple[str, str]]:
    sent = message.additional_kwargs.get("tool_calls") or []
    functions = [call.get("function") or {} for call in sent if isinstance(call, dict)]
    return [(each.get("name") or "", each.get("arguments") or "") for each in functions]


def _readable_call(call: dict[str, Any]) -> Call:
    args = call["args"] if isinstance(call.get("args"), dict) else {}
    return Call(id=call["id"], name=call.get("name") or "", args=args, raw=_written(args))


_written: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""What ``json.dumps`` makes anew for each call."""


def _unreadable_call(call: dict[str, Any]) -> Call:
    raw, error = call.get("args"), call.get("error") or ""
    return Call(
        id=call["id"],
        name=call.get("name") or "",
        args=None,
        raw=raw if isinstance(raw, str) else "",
        doubt=error.removeprefix(_DOUBT) if error.startswith(_DOUBT) else "",
    )
