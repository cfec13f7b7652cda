"""Making a request that every provider takes, whatever the history holds.

The history keeps what was said; only what is sent is mended."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from daruma.state.messages import Growing, growing

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


class Sendable(list[BaseMessage]):
    """A request that every provider takes: there is nothing more to mend.

    ``to_translate`` of its messages LangChain may hand to a model as something else, and has to
    look at.
    """

    def __init__(self, messages: Iterable[BaseMessage], *, to_translate: int | None = None) -> None:
        super().__init__(messages)
        self.to_translate = _to_translate(0, self) if to_translate is None else to_translate


def sendable(messages: Sequence[BaseMessage]) -> Sendable:
    """Merge system messages at the head (TL-20), mend names, give every call its one result."""
    if isinstance(messages, Sendable):
        return messages
    system = [message.text for message in messages if isinstance(message, SystemMessage)]
    others = [message for message in messages if not isinstance(message, SystemMessage)]
    head = [system_message("\n\n".join(system))] if system else []
    return Sendable([*head, *_answered(_with_sendable_names(others))])


@lru_cache(maxsize=64)
def system_message(system: str) -> SystemMessage:
    """Return the prompt as a message: the same one for each request of a task."""
    return SystemMessage(system)


def request(
    head: Sequence[BaseMessage], history: Sequence[BaseMessage], tail: Sequence[BaseMessage] = ()
) -> Sendable:
    """Return all three as one request: what :func:`sendable` makes of them.

    Of a history that knows of itself what is settled, only the rest is looked at.
    """
    through = count_settled(history)
    rest = sendable([*history[through:], *tail])
    if not through or any(isinstance(message, SystemMessage) for message in rest[:1]):
        return sendable([*head, *history, *tail])
    first = sendable(head)
    shown = history if through == len(history) else history[:through]
    most = first.to_translate + growing(history).known(_to_translate, 0) + rest.to_translate
    return Sendable([*first, *shown, *rest], to_translate=most)


_WORDS_AND_CALLS: Final = frozenset(
    {"text", "reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "function_call"}
)
"""Kinds of content that LangChain hands on; pictures, sounds and files it may translate."""


def _to_translate(known: int, messages: Iterable[BaseMessage]) -> int:
    contents = (message.content for message in messages)
    lists = (each for each in contents if isinstance(each, list))
    return known + sum(not all(map(_is_handed_on, each)) for each in lists)


def _is_handed_on(part: object) -> bool:
    if not isinstance(part, dict):
        return True
    kind = part.get("type")
    return isinstance(kind, str) and kind in _WORDS_AND_CALLS


def count_settled(history: Sequence[BaseMessage]) -> int:
    """Return how many messages, from the beginning, are sent just as they are; 0 if unknown.

    What is sent of the others does not depend on them.
    """
    return history.known(_settled, _NOTHING).through if isinstance(history, Growing) else 0


class Settled(NamedTuple):
    """How much of a history, from its beginning, is sent just as it is.

    Of the messages that were ``seen``, those ``through`` some place; ``calls`` wait for results.
    ``ended``: whatever follows, no more is settled.
    """

    through: int = 0
    seen: int = 0
    calls: frozenset[str] = frozenset()
    ended: bool = False


_NOTHING: Final = Settled()


def _settled(known: Settled, messages: Sequence[BaseMessage]) -> Settled:
    for message in messages:
        if known.ended:
            break
        known = _after(known, message)
    return known


def _after(known: Settled, message: BaseMessage) -> Settled:
    calls = known.calls
    if isinstance(message, ToolMessage):
        ended, calls = message.tool_call_id not in calls, calls - {message.tool_call_id}
    elif isinstance(message, AIMessage):
        ended = bool(calls) or _has_to_be_mended(message)
        calls = frozenset(str(call["id"]) for call in _calls(message))
    else:
        ended = bool(calls) or isinstance(message, SystemMessage)
    if ended:
        return known._replace(ended=True)
    seen = known.seen + 1
    return Settled(known.through if calls else seen, seen, calls)


def _with_sendable_names(messages: Iterable[BaseMessage]) -> Iterator[BaseMessage]:
    for message in messages:
        if isinstance(message, AIMessage) and _has_to_be_mended(message):
            changes = {
                "tool_calls": [_named(dict(call)) for call in message.tool_calls],
                "invalid_tool_calls": [_named(dict(call)) for call in message.invalid_tool_calls],
                # What the provider sent stands here too, and would be sent back instead.
                "additional_kwargs": {
                    key: value
                    for key, value in message.additional_kwargs.items()
                    if key != "tool_calls"
                },
            }
            yield message.model_copy(update=changes)
        else:
            yield message


def _has_to_be_mended(message: AIMessage) -> bool:
    # Most have not, and copying all of a long history for each request takes its time.
    calls = _calls(message)
    sent = bool(calls) and "tool_calls" in message.additional_kwargs
    return sent or any(_sendable(call["name"]) != call["name"] for call in calls)


def _calls(message: AIMessage) -> Sequence[Any]:
    # Once for each message of each request: a new tuple for all of them takes its time too.
    invalid = message.invalid_tool_calls
    return (*message.tool_calls, *invalid) if invalid else message.tool_calls


def _named(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "name": _sendable(call.get("name"))}


@lru_cache(maxsize=1000)
def _sendable(name: str | None) -> str:
    """Return a name as OpenAI takes it: with any other in its history it refuses every request."""
    return _REFUSED.sub("_", name or "")[:64] or "unknown"


def _answered(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """Put a result behind each call that has none, and leave out results of no call."""
    done: list[BaseMessage] = []
    open_calls: dict[str, str] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            if open_calls.pop(message.tool_call_id, None):
                done.append(message)
            continue
        if open_calls:
            done.extend(_missing(open_calls))
            open_calls = {}
        if isinstance(message, AIMessage):
            open_calls = {str(call["id"]): str(call["name"]) for call in _calls(message)}
        done.append(message)
    return [*done, *_missing(open_calls)]


def _missing(open_calls: dict[str, str]) -> Iterator[ToolMessage]:
    for call_id, name in open_calls.items():
        yield ToolMessage("No result is known.", tool_call_id=call_id, name=name, status="error")
