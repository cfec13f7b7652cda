"""Messages as the conventions for generative AI write them into a span: JSON, without keys."""

import json
from collections.abc import Iterable
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from daruma.graph.tracing.shown_text import shown

_ROLES: Final = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def content_of(messages: Iterable[BaseMessage]) -> str:
    """Return messages as ``[{"role", "parts": [...]}]``; each text is cut where it is too long."""
    return json.dumps(
        [{"role": _ROLES.get(m.type, m.type), "parts": _parts(m)} for m in messages],
        ensure_ascii=False,
    )


def _parts(message: BaseMessage) -> list[dict[str, Any]]:
    text = shown(message.text)
    if isinstance(message, ToolMessage):
        return [{"type": "tool_call_response", "id": message.tool_call_id, "response": text}]
    parts: list[dict[str, Any]] = [{"type": "text", "content": text}] if text else []
    if isinstance(message, AIMessage):
        parts += [
            {
                "type": "tool_call",
                "id": call["id"],
                "name": call["name"],
                "arguments": shown(json.dumps(call["args"], ensure_ascii=False, default=str)),
            }
            for call in message.tool_calls
        ]
    return parts
