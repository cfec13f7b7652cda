"""The tool calls of a model's answer, in whichever way it made them. Pure."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from math import isfinite
from typing import Any, Final

from langchain_core.messages import AIMessage

from daruma.tools.calls.repair.json_reader import Unreadable, read_value

# --- Which arguments can be kept in a checkpoint just as they are. Pure.

DEEPEST: Final = 100
"""Levels of lists and objects in each other: what stores them goes to some hundred."""
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The whole numbers that msgpack knows."""


def unstorable(value: Any, depth: int = 0) -> str | None:
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
        if said := unstorable(value, depth + 1):
            return said
    return None


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


# --- The calls of a streamed answer as the model sent them, where they are not what was read. Pure.

SENT_CALLS: Final = "sent_calls"
"""Where an answer holds its calls as they were sent: `id`, `name`, and `args` as text."""


def as_sent(message: AIMessage) -> AIMessage:
    """Return an answer whose calls are those that were sent, if it holds them; else as it is.

    Read from a stream, LangChain completes arguments that were cut off: they must not run.
    """
    sent = message.additional_kwargs.get(SENT_CALLS)
    if sent is None:
        return message
    others = {k: v for k, v in message.additional_kwargs.items() if k != SENT_CALLS}
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


# --- The shapes in which models write a tool call as a JSON object.

NAMES: Final = ("name", "tool", "tool_name", "function")
ARGUMENTS: Final = ("arguments", "args", "parameters", "input", "tool_input")
MARKS: Final = frozenset({"id", "type", "call_id", "tool_call_id", "index"})
NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,127}")
HEAD: Final = re.compile(
    r"""[\s\[{]*(?:["']?(?:tool_calls|function)["']?\s*:[\s\[{]*)*"""
    r"""["']?(?:name|tool|tool_name|function)["']?\s*:\s*["']([A-Za-z_][\w.:/-]{0,127})["']\s*,\s*"""
    r"""["']?(?:arguments|args|parameters|input|tool_input)["']?\s*:\s*"""
)


@dataclass(frozen=True)
class WrittenCall:
    """A call as it was written: ``args`` is None where they can not be read, then see ``raw``."""

    name: str
    args: dict[str, Any] | None
    raw: str


def calls_in(value: Any) -> tuple[WrittenCall, ...]:
    """Return the calls that a JSON value is, wholly; () for a value that is anything else."""
    if isinstance(value, Mapping) and value.keys() == {"tool_calls"}:
        value = value["tool_calls"]
    items = value if isinstance(value, list) else [value]
    found = [_call(item) for item in items]
    whole = [each for each in found if each is not None]
    return tuple(whole) if len(whole) == len(found) else ()


def broken_call(text: str) -> WrittenCall | None:
    """Return the call that a text certainly begins, though it is no JSON; None if it is none.

    Its ``raw`` is what follows as arguments, without the brackets of the call around them.
    """
    head = HEAD.match(text[:2_000])
    if head is None or "{" not in head.group():
        return None
    raw = text[head.end() :].rstrip()
    for bracket in re.findall(r"[\[{]", head.group())[::-1]:
        raw = raw.removesuffix("}" if bracket == "{" else "]").rstrip()
    return WrittenCall(head.group(1), None, raw)


def _call(item: Any) -> WrittenCall | None:
    if not isinstance(item, Mapping):
        return None
    inner = item.get("function")
    if isinstance(inner, Mapping):
        return _call(inner) if item.keys() <= {"function"} | MARKS else None
    names = [key for key in NAMES if key in item]
    arguments = [key for key in ARGUMENTS if key in item]
    if (len(names), len(arguments)) != (1, 1) or item.keys() - {*names, *arguments} - MARKS:
        return None
    name = item[names[0]]
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        return None
    return _with_arguments(name, item[arguments[0]])


def _with_arguments(name: str, given: Any) -> WrittenCall | None:
    if given is None:
        return WrittenCall(name, {}, "")
    if isinstance(given, str):
        return _with_text(name, given)
    raw = json.dumps(given, ensure_ascii=False)
    return WrittenCall(name, dict(given) if isinstance(given, Mapping) else None, raw)


def _with_text(name: str, given: str) -> WrittenCall | None:
    """Return a call whose arguments are JSON text, None where they are plain words: it is data."""
    if given.strip() and not given.lstrip().startswith(("{", "```", '"', "'")):
        return None
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = None
    return WrittenCall(name, value if isinstance(value, dict) else None, given)


# --- Tool calls that a model wrote into its text instead of making them (TL-18).

OPENING: Final = re.compile(r"^[ \t]*(?:(<tool_call>)|```tool_calls?[ \t]*\n)\s*", re.MULTILINE)
CLOSING: Final = re.compile(r"\s*(?:</tool_call>|```)")
WHOLE_FENCE: Final = re.compile(r"```(?:json|tool_calls?)?[ \t]*\n(.*)```", re.DOTALL)
LAST_FENCE: Final = re.compile(r"^```json[ \t]*\n", re.MULTILINE)
EXAMPLE: Final = re.compile(
    r"example|instance|e\.g\.|such as|would|could|might|you can|format|schema|例|比如|格式",
    re.IGNORECASE,
)
"""Words before a call that make it something shown rather than something done."""
ANNOUNCED: Final = re.compile(
    r"\b(?:I['’]ll|I will|I['’]m|I am|I (?:need|have|want) to|let me|let['’]s|calling|using|now"
    r"|next|first|then)\b|我来|让我|接下来|现在|调用",
    re.IGNORECASE,
)
REPORTED: Final = re.compile(
    r"\b(?:not|never|refus\w*|contain\w*|says?|said|reads?|shows?|found|ran|was|were|earlier)\b"
    r"|n['’]t\b|cannot|不|没|内容",
    re.IGNORECASE,
)
"""In the last sentence before a call: its model says that it makes it, or tells of one."""
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
SPACE: Final = re.compile(r"\s+")
MOST_CALLS: Final = 128
"""Calls of one text; six times what a turn may run unless it is told otherwise."""
NAMED: Final = re.compile(r"""["'](?:name|tool|tool_name)["']\s*:\s*["']([^"']{1,128})["']""")


def written_calls(text: str, visible: Collection[str]) -> tuple[WrittenCall, ...]:
    """Return the calls that a text is, () where it is an answer. Raises nothing.

    The whole text must be the call or calls, bare or in one fence. Words around are taken only
    with ``<tool_call>`` tags and ``tool_call`` fences, and before one last ``json`` fence that
    names a visible tool exactly, if they announce the call and do not speak of an example.
    """
    text = text.strip()
    marked = tuple(islice(_marked(text), MOST_CALLS))
    if marked:
        return marked
    if text.startswith("```"):
        fence = WHOLE_FENCE.fullmatch(text)
        return _whole(fence.group(1).strip()) if fence else ()
    return _whole(text) if text.startswith(("{", "[")) else _last(text, visible)


def _whole(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls that a text is from its first character to its last, one after the other."""
    found: list[WrittenCall] = []
    at = 0
    while at < len(text):
        try:
            reading = read_value(text, at)
        except Unreadable:
            return _broken(text) if not found or not _word_behind(text, at) else ()
        calls = calls_in(reading.value)
        if reading.unclosed or (reading.rungs and calls):
            return _broken(text) or calls
        if not calls or len(found) > MOST_CALLS:
            return ()
        found.extend(calls)
        at = _next_place(text, reading.end)
    return tuple(found)


def _broken(text: str) -> tuple[WrittenCall, ...]:
    broken = broken_call(text)
    return (broken,) if broken else ()


def _next_place(text: str, at: int) -> int:
    behind = SPACE.match(text, at)
    return behind.end() if behind else at


def _word_behind(text: str, at: int) -> bool:
    """Whether words follow a whole call: then it is shown, or its model goes on."""
    return text[at : at + 1] not in ("{", "[", "}", "]")


def _marked(text: str) -> Iterator[WrittenCall]:
    """Yield the calls in tags and ``tool_call`` fences that stand in no other fence."""
    at = seen = fences = 0
    while opening := OPENING.search(text, at):
        fences += text.count("```", seen, opening.start())
        at = seen = opening.end()
        if fences % 2:
            fences += opening.group(1) is None
            continue
        end = _end_of_values(text, at)
        if end is None:
            yield _unreadable_text(text[at:])
            return
        yield from _whole(text[at:end].strip()) or (_unreadable_text(text[at:end]),)
        closing = CLOSING.match(text, end)
        at = seen = closing.end() if closing else end


def _end_of_values(text: str, at: int) -> int | None:
    """Return where the values end that begin here, None where they or what is behind is broken."""
    try:
        while True:
            reading = read_value(text, at)
            at = reading.end
            if reading.unclosed:
                return None
            if not text[at : at + 100].strip() or CLOSING.match(text, at):
                return at
    except Unreadable:
        return None


def _unreadable_text(text: str) -> WrittenCall:
    body = re.split(r"</tool_call>|\n```", text, maxsplit=1)[0].strip()
    named = NAMED.search(body[:2_000])
    return broken_call(body) or WrittenCall(named.group(1) if named else "", None, body)


def _last(text: str, visible: Collection[str]) -> tuple[WrittenCall, ...]:
    opening = LAST_FENCE.search(text)
    if opening is None or text.count("```") != 2 or not text.endswith("```"):
        return ()
    if EXAMPLE.search(text, 0, opening.start()) or not _announced(text[: opening.start()]):
        return ()
    calls = _whole(text[opening.end() : -3].strip())
    sure = all(call.name in visible and call.args is not None for call in calls)
    return calls if sure else ()


def _announced(words: str) -> bool:
    last = next((each for each in reversed(SENTENCE.split(words)) if each.strip()), "")
    return ANNOUNCED.search(last) is not None and REPORTED.search(last) is None


# --- The tool calls of a model's answer, in whichever way it made them. Pure.

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
    raw = call.get("args")
    return Call(
        id=call["id"],
        name=call.get("name") or "",
        args=None,
        raw=raw if isinstance(raw, str) else "",
    )
