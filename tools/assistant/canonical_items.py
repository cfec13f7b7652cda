"""The one form in which the assistant's items are made, and what is asked for (AS-01, TL-19)."""

from typing import Final

from daruma.tools.assistant.arguments import TIMES
from daruma.tools.assistant.items import Kind
from daruma.tools.canonical import Canonical, DateKind

_TITLES: Final = dict.fromkeys(("name", "task", "text", "what", "summary"), "title")


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
