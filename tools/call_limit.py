"""The most calls that are kept of one answer (TL-16). Pure."""

from typing import Any

from langchain_core.messages import AIMessage

from daruma.state.audit import SAMPLE, SAMPLE_BYTES, LeftOut
from daruma.tools.answer_calls import calls_of


def limited(message: AIMessage, limit: int | None) -> tuple[AIMessage, LeftOut | None]:
    """Keep the first calls of an answer, in order, also in the history; say what was left out."""
    if limit is None or len(message.tool_calls) + len(message.invalid_tool_calls) <= limit:
        return message, None
    calls = calls_of(message)
    kept = {call.id for call in calls[:limit]}
    omitted = calls[limit:]
    changes = {
        "tool_calls": [call for call in message.tool_calls if call["id"] in kept],
        "invalid_tool_calls": [call for call in message.invalid_tool_calls if call["id"] in kept],
        "content": _kept_content(message.content, {call.id for call in omitted}),
        # What the provider sent stands here too.
        "additional_kwargs": {
            k: v for k, v in message.additional_kwargs.items() if k != "tool_calls"
        },
    }
    left_out = LeftOut(
        total=len(calls),
        executed=limit,
        omitted=len(omitted),
        limit=limit,
        names=tuple(_cut(call.name) for call in omitted[:SAMPLE]),
    )
    return message.model_copy(update=changes), left_out


def _kept_content(content: Any, omitted: set[str]) -> Any:
    if not isinstance(content, list):
        return content
    return [p for p in content if not (isinstance(p, dict) and p.get("id") in omitted)]


def _cut(name: str) -> str:
    return name.encode("utf-8", "replace")[:SAMPLE_BYTES].decode("utf-8", "ignore")
