"""Watching a thread that some other process runs: what is new is told, until it stops."""

import asyncio
from collections.abc import Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from daruma.graph.command_line.paper import Line, Paper
from daruma.graph.command_line.thread_story import message_lines
from daruma.graph.command_line.thread_view import ThreadView, thread_view
from daruma.graph.storage.postgres import Postgres

POLL: Final = 0.5
"""Seconds between two looks; one costs a few milliseconds."""


async def follow(
    postgres: Postgres, thread: str, paper: Paper, *, poll: float = POLL
) -> ThreadView:
    """Tell what is said and done on a thread, and return how it stands when nobody runs it."""
    told, status = 0, ""
    while True:
        view = await thread_view(postgres, thread)
        if view.status != status and view.is_busy:
            paper.put(Line("head", f"thread {thread}", view.status))
        status, until = view.status, settled(view.messages)
        paper.put(*message_lines(view.messages[told:until]))
        told = max(told, until)
        if not view.is_busy:
            return view
        await asyncio.sleep(poll)


def settled(messages: Sequence[AnyMessage]) -> int:
    """Return how many messages can be told: those before a call that has no result yet."""
    results = {message.id for message in messages if isinstance(message, ToolMessage)}
    for number, message in enumerate(messages):
        calls = message.tool_calls if isinstance(message, AIMessage) else ()
        if any(f"{message.id}:{call['id']}" not in results for call in calls):
            return number
    return len(messages)
