"""Showing less of one message: a placeholder for a tool's output, or the two ends of long texts.

What is short enough stays as it is, so that shortening twice is shortening once.
"""

import json
from typing import Any, Final, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from daruma.state.reference import REFERENCE, left_out

PRUNED: Final = 300
"""Characters of a tool's output that stay in a pruned history; a placeholder is shorter."""
SHRUNK: Final = 600
"""Characters of a text in a shrunk turn: a paragraph from each end, or so."""

M = TypeVar("M", bound=BaseMessage)


def ends(text: str, most: int) -> str:
    """Return at most so many characters: the text, or its ends and how much is between them."""
    if len(text) <= most:
        return text
    mark = f"\n[... {len(text)} characters, shortened ...]\n"
    room = most - len(mark)
    if room <= 0:
        return text[:most]
    return f"{text[: room - room // 2]}{mark}{text[len(text) - room // 2 :]}"


def pruned(message: M) -> M:
    """Return a tool's output as one line that says whose it was, and how to read it again."""
    if not isinstance(message, ToolMessage):
        return message
    whole = message.content if isinstance(message.content, str) else message.text
    if len(whole) <= PRUNED:  # of a string LangChain's ``text`` would be a copy
        return message
    size, reference = len(whole), message.additional_kwargs.get(REFERENCE)
    line = left_out(size, reference) if reference else f"[{size} characters left out to save room]"
    return message.model_copy(update={"content": f"{(message.name or 'tool')[:64]}: {line}"})


def shortened(message: M, most: int) -> M:
    """Return a message of which no text is longer than ``most``; what is no text is named only."""
    changes: dict[str, Any] = {}
    content = _content(message, most)
    if content != message.content:
        changes["content"] = content
    if isinstance(message, AIMessage):
        changes |= _calls(message, most)
    return message.model_copy(update=changes) if changes else message


def _content(message: BaseMessage, most: int) -> Any:
    if isinstance(message.content, str):
        return ends(message.content, most)
    others = [part for part in message.content if not _is_text(part)]
    if not others and len(message.text) <= most:
        return message.content
    note = f"[{len(others)} parts that are no text, left out]" if others else ""
    return ends(message.text, max(0, most - len(note) - 1)) + ("\n" + note if note else "")


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") == "text")


def _calls(message: AIMessage, most: int) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    calls = [{**call, "args": _args(call["args"], most)} for call in message.tool_calls]
    if calls != message.tool_calls:
        changes["tool_calls"] = calls
    broken = [{**call, "args": ends(call["args"] or "", most)} for call in _long(message, most)]
    if broken:
        changes["invalid_tool_calls"] = broken
    return changes


def _long(message: AIMessage, most: int) -> list[Any]:
    invalid = message.invalid_tool_calls
    return list(invalid) if any(len(call["args"] or "") > most for call in invalid) else []


def _args(args: dict[str, Any], most: int) -> dict[str, Any]:
    """Return arguments with the ends of their long texts; where that is not enough, their size."""
    size = len(json.dumps(args, default=str))
    if size <= most:
        return args
    short = {
        key: ends(each, most // 2) if isinstance(each, str) else each for key, each in args.items()
    }
    if len(json.dumps(short, default=str)) <= 2 * most:
        return short
    return {"left_out": f"{size} characters of arguments"}
