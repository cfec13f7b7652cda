"""The assistant's tools that make something: what their arguments are, and what is asked for."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from daruma.tools.assistant.items import Item, Kind, id_of, keep
from daruma.tools.canonical import Canonical, DateKind
from daruma.tools.errors import ToolError
from daruma.tools.shipped_tool import Args, shipped_tool
from daruma.tools.tool import Surroundings, Tool

KEY: Final = "call_key"
"""The argument by which a call that is made again is known."""

TIMES: Final = ("due_time", "due_datetime", "start_time", "end_time")
"""What makes a scheduled task of a todo (AS-01)."""

_TITLES: Final = dict.fromkeys(("name", "task", "text", "what", "summary"), "title")


class _Item(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1, description="What it is, in a few words.")
    notes: str = Field(default="", description="Anything else worth keeping.")
    call_key: str = ""


class TodoArgs(_Item):
    """Note something to do, on a day or on any.

    Give dates in the user's own words or as 2026-11-25. With a time it becomes a scheduled task.
    """

    todo_date: str = Field(default="", description="The day, as in: tomorrow, 2026-11-25.")


class ScheduleTaskArgs(_Item):
    """Note something to do at a time: when it begins and ends, or when it is due."""

    todo_date: str = Field(default="", description="The day, where the times have none.")
    start_time: str = ""
    end_time: str = ""
    due_time: str = ""
    due_datetime: str = ""


class GoalArgs(_Item):
    """Note a goal and the day by which it is to be reached."""

    goal_date: str = Field(description="The day, in the user's own words or as 2026-11-25.")


class ReminderArgs(_Item):
    """Keep a reminder for a day, or for a time on it. It is listed; nothing rings."""

    reminder_date: str = Field(description="When, as in: tomorrow at nine, 2026-11-25T09:00.")


Made = TodoArgs | ScheduleTaskArgs | GoalArgs | ReminderArgs


def _aliases(field: str, *more: str) -> dict[str, str]:
    names = ("date", "day", "when", *more)
    return {**_TITLES, **dict.fromkeys((each for each in names if each != field), field)}


def _dates(kind: DateKind, *fields: str) -> dict[str, DateKind]:
    return dict.fromkeys(fields, kind)


_WHAT: Final = {"title": "What is it about?"}

CANONICAL: Final[dict[Kind, Canonical]] = {
    "todo": Canonical(
        _aliases("todo_date", "due_date", "on"),
        promote_to="create_schedule_task",
        promote_when=TIMES,
        dates=_dates("date", "todo_date"),
        ask_for={**_WHAT, "todo_date": "On which day is it to be done?"},
    ),
    "schedule_task": Canonical(
        {**_aliases("todo_date", "due_date", "on"), "start": "start_time", "end": "end_time"},
        dates=_dates("date", "todo_date") | _dates("time", *TIMES),
        ask_for={
            **_WHAT,
            "todo_date": "On which day is it?",
            "start_time": "When does it begin?",
            "end_time": "When does it end?",
            "due_time": "At what time is it due?",
            "due_datetime": "When is it due?",
        },
    ),
    "goal": Canonical(
        _aliases("goal_date", "target_date", "deadline", "due_date", "due", "by", "until"),
        dates=_dates("date", "goal_date"),
        ask_for={**_WHAT, "goal_date": "By when do you want to reach it?"},
    ),
    "reminder": Canonical(
        _aliases(
            "reminder_date", "time", "datetime", "date_time", "remind_at", "due_date", "at", "on"
        ),
        dates=_dates("date", "reminder_date"),
        ask_for={**_WHAT, "reminder_date": "When should I remind you?"},
    ),
}


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
