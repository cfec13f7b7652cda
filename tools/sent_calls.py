"""The calls of a streamed answer as the model sent them, where they are not what was read. Pure."""

import json
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage

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
        "tool_calls": [_readable(call) for call in sent if is_object(call["args"])],
        "invalid_tool_calls": [_unreadable(call) for call in sent if not is_object(call["args"])],
    }
    return message.model_copy(update=changes)


def is_object(text: str) -> bool:
    """Whether a text is a JSON object, to its end. No text at all stands for no arguments."""
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except (ValueError, RecursionError):
        return False


def _readable(call: Mapping[str, str]) -> dict[str, Any]:
    return {**call, "type": "tool_call", "args": json.loads(call["args"] or "{}")}


def _unreadable(call: Mapping[str, str]) -> dict[str, Any]:
    return {**call, "type": "invalid_tool_call", "error": None}
