"""A tool that fails as told, to see what becomes of a task when a tool of one's own does."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

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
    given = tool if isinstance(tool, BaseTool) else _from_function(tool)
    number = itertools.count()

    def called(**args: Any) -> Any:
        fault = _at(faults, next(number))
        time.sleep(_seconds(fault))
        return fault if isinstance(fault, str) else given.invoke(args)

    async def acalled(**args: Any) -> Any:
        fault = _at(faults, next(number))
        await asyncio.sleep(_seconds(fault))
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


def _from_function(function: Callable[..., Any]) -> StructuredTool:
    if asyncio.iscoroutinefunction(function):
        return StructuredTool.from_function(coroutine=function)
    return StructuredTool.from_function(function)


def _at(faults: Sequence[Fault], number: int) -> Fault:
    fault = faults[number] if number < len(faults) else None
    if isinstance(fault, Exception):
        raise fault
    return fault


def _seconds(fault: Fault) -> float:
    return fault if isinstance(fault, (int, float)) else 0.0
