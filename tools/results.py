"""The one answer that every tool call gets, whatever became of it (TL-03)."""

from collections.abc import Iterable

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state.tool_task import ToolTask

LIMIT = 30_000
"""Characters of a result that the model is shown: about 8,000 tokens."""


def tool_result(call: ToolTask, text: str, *, ok: bool = True) -> ToolMessage:
    """Return the result message of a call, its text safe to store and cut to ``LIMIT``."""
    return ToolMessage(
        storable(text),
        tool_call_id=call.id,
        name=call.name or call.requested_name or "unknown",
        id=call.result_id,
        status="success" if ok else "error",
    )


def storable(text: str) -> str:
    """Return text without NUL and lone surrogates, which no database takes, its middle cut."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= LIMIT:
        return text
    half = LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - LIMIT} characters cut ...]\n{text[-half:]}"


def unanswered(messages: Iterable[AnyMessage]) -> list[ToolMessage]:
    """Return results for the calls that have none, saying that they did not run."""
    messages = list(messages)
    last = next((m for m in reversed(messages) if isinstance(m, AIMessage)), None)
    if last is None:
        return []
    return [
        ToolMessage(
            "Not run: the task ended before.",
            tool_call_id=str(call["id"]),
            name=call["name"] or "unknown",
            id=f"{last.id}:{call['id']}",
            status="error",
        )
        for call in (*last.tool_calls, *last.invalid_tool_calls)
        if f"{last.id}:{call['id']}" not in {m.id for m in messages}
    ]
