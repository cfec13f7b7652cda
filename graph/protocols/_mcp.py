"""The MCP server: tools that run tasks, answer their questions, and show where they stand."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from anyio import CancelScope
from langgraph.types import Command
from mcp.server.fastmcp import Context, FastMCP

from daruma.graph.protocols._threads import (
    ClientThreads,
    config_of,
    describe_question,
    request_of,
    status_of,
)
from daruma.graph.requests import RequestRefused
from daruma.state.interrupts import ReplyRefused
from daruma.state.mode import Mode

T = TypeVar("T")
Asking = Context[Any, Any, Any]
Answer = dict[str, Any]

_PROGRESS: Final = {
    "phase_started": "title",
    "tool_started": "summary",
    "verification_completed": "summary",
    "reflected": "text",
}
"""The events that a client hears of while a task runs, each with the field that says it."""

_INSTRUCTIONS: Final = (
    "Daruma carries out tasks in one workspace. `run` returns the result, or the open questions: "
    "ask the user, and pass the reply on with `answer`."
)


async def serve_mcp(threads: ClientThreads, folder: str) -> None:
    """Serve a folder over standard input and output until the client goes away.

    Raises, before it begins, what is wrong with the settings of the folder.
    """
    await asyncio.to_thread(threads.keep, folder)
    await mcp_server(threads, folder).run_stdio_async()


def mcp_server(threads: ClientThreads, folder: str) -> FastMCP:
    """Make the server. Its clients are not trusted: they tighten, and never weaken (SE-03)."""
    server = FastMCP("daruma", _INSTRUCTIONS, log_level="ERROR")

    async def go(thread: str, given: Any, context: Asking) -> Answer:
        await finish_with_caller(_run(threads, thread, folder, given, context))
        return await _stand(threads, thread, folder)

    @server.tool()
    async def run(
        context: Asking, task: str = "", mode: Mode | None = None, thread: str | None = None
    ) -> Answer:
        """Carry out a task in the workspace; return the result, or the open questions.

        thread: go on with an earlier conversation; without a task, with its unfinished work.
        mode: how to work; plan_exec has a plan reviewed first.
        """
        if not task.strip() and thread is None:
            raise RequestRefused("say what is to be done as the task, or name a thread to go on")
        given = request_of(task, folder, mode) if task.strip() else None
        return await go(thread or threads.new_name(), given, context)

    @server.tool()
    async def answer(context: Asking, thread: str, question: str, reply: dict[str, Any]) -> Answer:
        """Answer the open question of that id on a thread, with a reply as its form says.

        Decisions are the user's: ask them. An approval names its approval_id and digest.
        """
        await threads.known(thread, folder)
        refuse_lasting(reply)
        return await go(thread, Command(resume={question: reply}), context)

    @server.tool()
    async def show(thread: str) -> Answer:
        """Tell where a thread stands, and what happened on it; nothing is run."""
        await threads.known(thread, folder)
        timeline = await threads.reader.atimeline(config_of(thread))
        return await _stand(threads, thread, folder) | {"timeline": str(timeline).splitlines()}

    return server


def refuse_lasting(reply: Mapping[str, Any]) -> None:
    """Refuse a yes for calls to come: a client gives one for what it names alone (SE-03)."""
    decisions = reply.get("decisions")
    for each in decisions if isinstance(decisions, list) else ():
        if isinstance(each, Mapping) and (each.get("always") or each.get("pattern")):
            raise ReplyRefused("a client can approve this call only: leave out always and pattern")


async def finish_with_caller(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await what is cancelled once, and waited for, when its caller is cancelled.

    A scope of anyio cancels all that is awaited within it again and again, also what cleans up.
    """
    going = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait([going])
    finally:
        going.cancel()
        with CancelScope(shield=True):
            await asyncio.wait([going])
    return going.result()


async def _run(
    threads: ClientThreads, thread: str, folder: str, given: Any, context: Asking
) -> None:
    heard = 0
    async for mode, event in threads.run(thread, folder, given):
        own = mode == "custom" and isinstance(event, Mapping)  # a tool may tell anything
        if own and (said := event.get(_PROGRESS.get(event.get("type", ""), ""))):
            heard += 1
            await context.report_progress(heard, message=str(said))


async def _stand(threads: ClientThreads, thread: str, folder: str) -> Answer:
    stop = await threads.stop(thread, folder)
    result = stop.result or {}
    return {
        "thread": thread,
        "status": status_of(stop),
        "output": result.get("output", ""),
        "error": result.get("error_message") or "",
        "questions": [describe_question(each) for each in stop.questions],
    }
