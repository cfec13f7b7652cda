"""The assistant's tools that make something."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from daruma.tools.assistant.arguments import (
    KEY,
    TIMES,
    GoalArgs,
    ReminderArgs,
    ScheduleTaskArgs,
    TodoArgs,
)
from daruma.tools.assistant.canonical_items import CANONICAL
from daruma.tools.assistant.items import Item, Kind, id_of, keep
from daruma.tools.errors import ToolError
from daruma.tools.shipped_tool import Args, shipped_tool
from daruma.tools.tool import Surroundings, Tool

Made = TodoArgs | ScheduleTaskArgs | GoalArgs | ReminderArgs


async def _make(kind: Kind, args: Made, at: Surroundings) -> str:
    fields = args.model_dump(exclude={KEY})
    fields = {name: value for name, value in fields.items() if value}
    if kind == "schedule_task" and not any(fields.get(name) for name in TIMES):
        raise ToolError(f"a scheduled task has a time: give one of {', '.join(TIMES)}")
    now = at.now()
    item = Item(id_of(kind, fields, args.call_key, now), kind, fields)
    await keep(at.needs_store(), at.settings.memory.namespace, item, now)
    return f"Kept: {item.line}"


async def _todo(args: TodoArgs, at: Surroundings) -> str:
    return await _make("todo", args, at)


async def _schedule_task(args: ScheduleTaskArgs, at: Surroundings) -> str:
    return await _make("schedule_task", args, at)


async def _goal(args: GoalArgs, at: Surroundings) -> str:
    return await _make("goal", args, at)


async def _reminder(args: ReminderArgs, at: Surroundings) -> str:
    return await _make("reminder", args, at)


def _making(kind: Kind, made: Tool) -> Tool:
    """Return a tool with what makes its calls canonical, and the model not shown their key."""
    shown = {**made.parameters["properties"]}
    del shown[KEY]
    parameters = {**made.parameters, "properties": shown}
    return replace(made, parameters=parameters, idempotency_key=KEY, canonical=CANONICAL[kind])


def _shipped(
    name: str, args_type: type[Args], run: Callable[[Args, Surroundings], Awaitable[str]]
) -> Tool:
    return shipped_tool(name, args_type, "external", run, toolset="assistant")


MAKING: Final[tuple[Tool, ...]] = (
    _making("todo", _shipped("create_todo", TodoArgs, _todo)),
    _making("schedule_task", _shipped("create_schedule_task", ScheduleTaskArgs, _schedule_task)),
    _making("goal", _shipped("create_goal", GoalArgs, _goal)),
    _making("reminder", _shipped("create_reminder", ReminderArgs, _reminder)),
)
