"""What the assistant's tools that make something are given."""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

KEY: Final = "call_key"
"""The argument by which a call that is made again is known."""

TIMES: Final = ("due_time", "due_datetime", "start_time", "end_time")
"""What makes a scheduled task of a todo (AS-01)."""


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
