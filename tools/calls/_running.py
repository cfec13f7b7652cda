"""Running a tool: what was said exactly, its time limit, its trace, faults put in on purpose."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config
from langchain_core.tools import BaseTool, StructuredTool

from daruma.state.calls import ToolTask
from daruma.state.text import digest
from daruma.tools.calls._langchain import structured_tool
from daruma.tools.calls._tool import Surroundings, Tool
from daruma.tools.errors import NotPermitted, OutcomeUnknown, ToolError
from daruma.tools.text import mask_keys, without_keys
from daruma.tools.threads import NotStarted

T = TypeVar("T")

# --- What a call with a key in it was exactly: kept by the process that the model said it in.
#
# What is stored of it is masked (SE-08), and its effect is as it was said: a file that holds a key
# is the workspace's. Another process that goes on with the thread does not know the key; there the
# call is refused in one line, and the model can say it again.

MOST_EXACT: Final = 256
"""Calls with keys in them that a process keeps; they wait for their turn, or for a person."""

NOT_STORED: Final = (
    "not run: its arguments held a key, which is masked in all that is stored, and the process "
    "that knew it is gone; call it again"
)


class ExactCalls:
    """The arguments of masked calls, by the thread, the call, and what of it is stored."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], dict[str, Any]] = {}

    def mask_update(self, thread_id: str, update: T) -> T:
        """Return what of a node's update may be stored: all keys masked, the calls noted here."""
        after = mask_keys(update)
        if after is update or not isinstance(after, dict) or not isinstance(update, dict):
            return after
        calls, said = after.get("calls"), update.get("calls")
        if isinstance(calls, tuple):
            broken = after.get("messages") != update.get("messages")
            pairs = zip(said or (), calls, strict=True)
            after["calls"] = tuple(self._noted(thread_id, *pair, broken=broken) for pair in pairs)
        return after

    def exact(self, thread_id: str, call: ToolTask) -> ToolTask:
        """Return a call as it was said. Raises ``NotPermitted`` where nobody here knows that."""
        if not call.masked:
            return call
        args = self._kept.get(_place(thread_id, call))
        if args is None:
            raise NotPermitted(NOT_STORED)
        return replace(call, args=args)

    def _noted(self, thread_id: str, said: ToolTask, call: ToolTask, *, broken: bool) -> ToolTask:
        if said.args == call.args:
            return replace(call, masked=call.masked or (broken and bool(call.problem)))
        self._kept[_place(thread_id, call)] = said.args
        if len(self._kept) > MOST_EXACT:
            del self._kept[next(iter(self._kept))]
        return replace(call, masked=True)


def _place(thread_id: str, call: ToolTask) -> tuple[str, str, str]:
    return thread_id, call.result_id, digest([call.name, call.args])


# --- A call of a tool as LangChain's tracers see it: one run of kind ``tool``, ended on every path.


async def run_shown(tool: Tool, args: Mapping[str, Any], surroundings: Surroundings) -> str:
    """Run a tool that is no LangChain tool, and show that to the callbacks of the run around it.

    LangChain's own tools show themselves. Raises what the tool does.
    """
    manager = get_async_callback_manager_for_config(ensure_config())
    if not manager.handlers:
        return await tool.run(args, surroundings)
    serialized = {"name": tool.name, "description": tool.description}
    told = mask_keys(dict(args))
    run = await manager.on_tool_start(serialized, str(told), inputs=told)
    try:
        output = await tool.run(args, surroundings)
    except BaseException as error:
        await run.on_tool_error(error)
        raise
    await run.on_tool_end(without_keys(output))
    return output


# --- The time limit of a tool's call, and what can be said of a call that was given up.

Outcome = str | BaseException
"""What a call came to: its text, or what would end the event loop if it were raised in a task."""

GRACE_SECONDS = 5.0
"""What an async tool has for its clean-up after it was cancelled. Then it is left to itself."""


async def run_with_timeout(
    seconds: float | None,
    tool: Tool,
    args: Mapping[str, Any],
    surroundings: Surroundings,
    *,
    grace: float = GRACE_SECONDS,
) -> str:
    """Run a tool's call for at most so many seconds (TL-21).

    The built-in tools have limits of their own.
    Raises :class:`OutcomeUnknown` for a call that was given up and may have had its effect, and
    ``ToolError`` where it has none or never began. What the tool itself raises, a ``TimeoutError``
    of its own included, is raised as it is. A cancellation of the caller goes on.
    """
    if tool.builtin:
        return await run_shown(tool, args, surroundings)
    if tool.blocking:
        return await _ended_at_once(seconds, tool, tool.run(args, surroundings))
    task = asyncio.ensure_future(_contained(tool.run(args, surroundings)))
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _stop(task, grace)
        raise
    if not task.done():
        outcome = await _stop(task, grace)
        began = not isinstance(outcome, NotStarted)
        raise _given_up(tool, f"did not end in {seconds:g} s", began=began)
    if task.cancelled():
        raise _given_up(tool, "was cancelled from within")
    outcome = task.result()
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def _ended_at_once(seconds: float | None, tool: Tool, work: Awaitable[str]) -> str:
    """Wait for work that a cancellation ends at once: without a task, and what a task takes."""
    before = _cancellations()
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except (TimeoutError, asyncio.CancelledError) as error:
        own = not limit.expired() and isinstance(error, TimeoutError | NotStarted)
        if own or _cancellations() > before:
            raise
        began = not isinstance(error.__cause__ or error, NotStarted)
    how = f"did not end in {seconds:g} s" if limit.expired() else "was cancelled from within"
    raise _given_up(tool, how, began=began)


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else 0


async def _contained(work: Awaitable[str]) -> Outcome:
    """Hand over what would end the event loop if a task of its own raised it."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt, NotStarted) as error:
        return error


async def _stop(task: "asyncio.Future[Outcome]", grace: float) -> Outcome | None:
    """Cancel a call; return what it still came to, None for nothing or an error of its clean-up."""
    task.cancel()
    await asyncio.wait({task}, timeout=grace)
    ended = task.done() and not task.cancelled()
    return task.result() if ended and task.exception() is None else None


def _given_up(tool: Tool, how: str, *, began: bool = True) -> ToolError:
    if not began:
        return ToolError(f"{tool.name} {how}: it did not even begin, others were in its way")
    if tool.effect == "none":
        return ToolError(f"{tool.name} {how}")
    return OutcomeUnknown(f"{tool.name} {how}")


# --- A tool that fails as told, to see what becomes of a task when a tool of one's own does.

Fault = Exception | str | float | None
"""What befalls one call: it raises, answers with a text of ours, or is late by so many seconds.

``None`` lets the call be.
"""


def with_faults(tool: BaseTool | Callable[..., Any], faults: Sequence[Fault]) -> StructuredTool:
    """Return a tool that is like another, but for its first calls: each has its fault.

    ``tool`` is a LangChain tool, or a function with a docstring; sync stays sync. An exception is
    raised and a text returned in place of the call, which is not made; after so many seconds, and
    for None, it is made. Calls are counted in this process, those that run side by side too.
    """
    given = tool if isinstance(tool, BaseTool) else structured_tool(tool)
    upcoming = iter(tuple(faults))

    def next_fault() -> tuple[Fault, float]:
        fault = next(upcoming, None)
        if isinstance(fault, Exception):
            raise fault
        return fault, fault if isinstance(fault, (int, float)) else 0.0

    def called(**args: Any) -> Any:
        fault, seconds = next_fault()
        time.sleep(seconds)
        return fault if isinstance(fault, str) else given.invoke(args)

    async def acalled(**args: Any) -> Any:
        fault, seconds = next_fault()
        await asyncio.sleep(seconds)
        return fault if isinstance(fault, str) else await given.ainvoke(args)

    is_async = getattr(given, "coroutine", None) is not None
    return StructuredTool(
        name=given.name,
        description=given.description,
        args_schema=given.args_schema or given.get_input_schema(),
        metadata=given.metadata,
        func=None if is_async else called,
        coroutine=acalled if is_async else None,
    )
