"""The tool calls of a model's answer, in whichever way it made them. Pure."""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from langchain_core.messages import AIMessage

from daruma.tools.repair.call_shape import WrittenCall
from daruma.tools.sent_calls import as_sent
from daruma.tools.storable_args import unstorable
from daruma.tools.written_calls import written_calls

_ID = re.compile(r"\w[\w.:|/+=-]{0,199}", re.ASCII)
"""What providers write. An approval goes by it on the command line, where ``*`` and ``--yes`` mean
something else."""


@dataclass(frozen=True)
class Call:
    """One call as the model made it; ``args`` is None where ``raw`` could not be read."""

    id: str
    name: str
    args: dict[str, Any] | None
    raw: str


def as_calls(message: AIMessage, visible: Collection[str]) -> AIMessage:
    """Return an answer with the calls that it only wrote into its text as real ones (TL-18)."""
    message = as_sent(message)
    if message.tool_calls or message.invalid_tool_calls or not visible:
        return message
    written = written_calls(message.text, visible)
    changes = {
        "tool_calls": [_native(call) for call in written if call.args is not None],
        "invalid_tool_calls": [_unread(call) for call in written if call.args is None],
    }
    return message.model_copy(update=changes) if written else message


def _native(call: WrittenCall) -> dict[str, Any]:
    return {"type": "tool_call", "name": call.name, "args": call.args, "id": None}


def _unread(call: WrittenCall) -> dict[str, Any]:
    return {
        "type": "invalid_tool_call",
        "name": call.name,
        "args": call.raw,
        "id": None,
        "error": None,
    }


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
    bad = [call for call in readable if unstorable(call["args"])]
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
    readable = [_readable(dict(call)) for call in message.tool_calls]
    unreadable = [_unreadable(dict(call)) for call in message.invalid_tool_calls]
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


def _readable(call: dict[str, Any]) -> Call:
    args = call["args"] if isinstance(call.get("args"), dict) else {}
    return Call(id=call["id"], name=call.get("name") or "", args=args, raw=_written(args))


_written: Final = json.JSONEncoder(ensure_ascii=False, default=str).encode
"""What ``json.dumps`` makes anew for each call."""


def _unreadable(call: dict[str, Any]) -> Call:
    raw = call.get("args")
    return Call(
        id=call["id"],
        name=call.get("name") or "",
        args=None,
        raw=raw if isinstance(raw, str) else "",
    )
