"""The one answer that every tool call gets, whatever became of it (TL-03)."""

from collections.abc import Iterable, Sequence
from unicodedata import category

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.state.growing import growing
from daruma.state.reference import REFERENCE
from daruma.state.tool_task import ToolTask

LIMIT = 30_000
"""Characters of a result that the model is shown: about 8,000 tokens."""


def tool_result(call: ToolTask, text: str, *, ok: bool = True, reference: str = "") -> ToolMessage:
    """Return the result message of a call, its text safe to store and cut to ``LIMIT``.

    ``reference`` is the id that the whole text is kept under, if the text is but its ends.
    """
    return ToolMessage(
        storable(text),
        tool_call_id=call.id,
        name=call.name or call.requested_name or "unknown",
        id=call.result_id,
        status="success" if ok else "error",
        additional_kwargs={REFERENCE: reference} if reference else {},
    )


def leave_out(messages: Sequence[AnyMessage]) -> bool:
    """Whether one of the messages is a result that was left out in part."""
    return growing(messages).known(_leave_out, start=False)


def _leave_out(known: bool, messages: Sequence[AnyMessage]) -> bool:  # noqa: FBT001 - a fold
    return known or any(
        isinstance(message, ToolMessage) and REFERENCE in message.additional_kwargs
        for message in messages
    )


def clean(text: str) -> str:
    """Return text without NUL and lone surrogates, which no database takes."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode("utf-8", "replace").decode("utf-8")


def storable(text: str) -> str:
    """Return a tool's text as it is stored: clean, and its middle cut where it is too long."""
    text = clean(text)
    if len(text) <= LIMIT:
        return text
    half = LIMIT // 2
    return f"{text[:half]}\n[... {len(text) - LIMIT} characters cut ...]\n{text[-half:]}"


ENDINGS = ("finish_reason", "stop_reason", "done_reason")
"""Where providers say why an answer ended: OpenAI and Google, Anthropic, Ollama."""
_NOT_BY_THE_MODEL = frozenset(
    {"length", "content_filter", "max_tokens", "model_context_window_exceeded", "safety"}
)


def cut_off(message: AIMessage) -> str:
    """Return why an answer was ended by a limit or a filter; empty if by the model itself."""
    said = (str(message.response_metadata.get(key)) for key in ENDINGS)
    return next((why for why in said if why.lower() in _NOT_BY_THE_MODEL), "")


def blank(text: str) -> bool:
    """Whether a text shows nothing: white space, control and zero-width characters only."""
    return all(each.isspace() or category(each) in ("Cf", "Cc") for each in text)


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
