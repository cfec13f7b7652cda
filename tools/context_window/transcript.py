"""A history as text for whoever summarises it: bounded, in pieces that fit a request. Pure."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.tools.context_window.shortening import ends

Count = Callable[[str], int]

TEXTS: Final = (2_000, 1_000, 500, 250, 120)
"""Characters that are shown of each text: as many as make no more than ``MOST_PIECES``."""
MOST_PIECES: Final = 6
"""Requests for one summary; of more the middle ones are left out."""


@dataclass(frozen=True)
class Piece:
    """Some messages, and how they read."""

    messages: tuple[AnyMessage, ...]
    text: str


def pieces(messages: Sequence[AnyMessage], room: int, count: Count) -> list[Piece]:
    """Return a history in pieces of at most ``room`` tokens each, and few of them."""
    made: list[Piece] = []
    for most in TEXTS:
        made = [*_packed(messages, most, room, count)]
        if len(made) <= MOST_PIECES:
            return made
    half = MOST_PIECES // 2
    return [*made[:half], *made[-half:]]


def _packed(messages: Sequence[AnyMessage], most: int, room: int, count: Count) -> Iterator[Piece]:
    packed: list[AnyMessage] = []
    lines: list[str] = []
    weight = 0
    for message in messages:
        line = _within(spoken(message, most), room, count)
        more = count(line) + 2
        if packed and weight + more > room:
            yield Piece(tuple(packed), "\n".join(lines))
            packed, lines, weight = [], [], 0
        packed.append(message)
        lines.append(line)
        weight += more
    if packed:
        yield Piece(tuple(packed), "\n".join(lines))


def _within(line: str, room: int, count: Count) -> str:
    while count(line) + 2 > room and len(line) > 60:
        line = ends(line, len(line) * 2 // 3)
    return line


def spoken(message: AnyMessage, most: int) -> str:
    """Return one message as lines that begin with who spoke; of outputs a quarter as much."""
    if isinstance(message, ToolMessage):
        failed = " (it failed)" if message.status == "error" else ""
        return f"[result of {message.name or 'a tool'}{failed}] {ends(message.text, most // 4)}"
    who = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    said = [f"[{who}] {ends(message.text, most)}"] if message.text.strip() else []
    if isinstance(message, AIMessage):
        said += [f"[{who} calls] {_call(dict(call), most)}" for call in message.tool_calls]
    return "\n".join(said) or f"[{who}] (no text)"


def _call(call: dict[str, object], most: int) -> str:
    args = json.dumps(call["args"], ensure_ascii=False, default=str)
    return f"{call['name']}({ends(args, most)})"
