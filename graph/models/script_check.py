"""What a turn of a script demands of a request, and how a request that falls short is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, get_buffer_string

from daruma.graph.models.script import Turn

_TAIL = 400


def lacking(turn: Turn, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> str:
    """What the turn expects and the request lacks, in words; empty when nothing is amiss."""
    return _lacking_text(turn, messages) or _lacking_tools(turn, tools)


def tail(messages: Sequence[BaseMessage]) -> str:
    """The last 400 characters of a request, in one line."""
    return f"the request ends: {get_buffer_string(messages)[-_TAIL:]!r}"


def _lacking_text(turn: Turn, messages: Sequence[BaseMessage]) -> str:
    request = get_buffer_string(messages) if turn.expect else ""
    missing = [text for text in turn.expect if text not in request]
    return f"expects in the request: {', '.join(map(repr, missing))}" if missing else ""


def _lacking_tools(turn: Turn, tools: Sequence[Mapping[str, Any]]) -> str:
    offered = [tool["function"]["name"] for tool in tools]
    if turn.expect_tools == () and offered:
        return f"expects no tools; offered: {', '.join(offered)}"
    missing = [name for name in turn.expect_tools or () if name not in offered]
    if not missing:
        return ""
    return f"expects the tools {', '.join(missing)}; offered: {', '.join(offered) or 'none'}"
