"""The time limit of a tool's call, and what can be said of a call that was given up (TL-21)."""

import asyncio
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from daruma.tools.errors import OutcomeUnknown, ToolError
from daruma.tools.tool import Surroundings, Tool
from daruma.tools.tool_run import run_shown
from daruma.tools.tool_threads import NotStarted

Outcome = str | BaseException
"""What a call came to: its text, or what would end the event loop if it were raised in a task."""

GRACE_SECONDS = 5.0
"""What an async tool has for its clean-up after it was cancelled. Then it is left to itself."""


async def run_within(
    seconds: float | None,
    tool: Tool,
    args: Mapping[str, Any],
    surroundings: Surroundings,
    *,
    grace: float = GRACE_SECONDS,
) -> str:
    """Run a tool's call for at most so many seconds; the built-in tools have limits of their own.

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
        await _waited(seconds, task)
    except asyncio.CancelledError:
        await _stop(task, grace)
        raise
    if not task.done():
        outcome = await _stop(task, grace)
        began = not isinstance(outcome, NotStarted)
        raise _given_up(tool, f"did not end in {seconds:g} s", began=began)
    if task.cancelled():
        raise _given_up(tool, "was cancelled from within")
    return _released(task.result())


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


async def _waited(seconds: float | None, task: "asyncio.Future[Outcome]") -> None:
    """Wait for a task so long, and leave it be: ``asyncio.wait`` takes twice as much for one."""
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()
    wake = partial(_wake, waiter)
    timer = None if seconds is None else loop.call_later(seconds, wake)
    task.add_done_callback(wake)
    try:
        await waiter
    finally:
        if timer:
            timer.cancel()


def _wake(waiter: "asyncio.Future[None]", _: object = None) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _contained(work: Awaitable[str]) -> Outcome:
    """Hand over what would end the event loop if a task of its own raised it."""
    try:
        return await work
    except (SystemExit, KeyboardInterrupt, NotStarted) as error:
        return error


def _released(outcome: Outcome) -> str:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


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
