"""The assistant's tools: todos, scheduled tasks, goals and reminders, in the store (AS-01)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, NamedTuple, get_args

from langgraph.store.base import BaseStore
from pydantic import Field

from daruma.tools.calls import Canonical, Surroundings, Tool, ToolArgs, shipped_tool
from daruma.tools.errors import ToolError

# --- What the assistant's tools that make something are given.

KEY: Final = "call_key"
"""The argument by which a call that is made again is known."""

TIMES: Final = ("due_time", "due_datetime", "start_time", "end_time")
"""What makes a scheduled task of a todo (AS-01)."""


class _Item(ToolArgs):
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


# --- What the assistant keeps: todos, scheduled tasks, goals and reminders, in the graph's store.

Kind = Literal["todo", "schedule_task", "goal", "reminder"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

MOST: Final = 1000
"""Items of a kind that are looked through."""


class Item(NamedTuple):
    """One thing that is kept; ``fields`` are the arguments it was made with, in canonical form."""

    id: str
    kind: Kind
    fields: Mapping[str, Any]
    done: bool = False

    @property
    def line(self) -> str:
        """The item on one line."""
        told = ", ".join(f"{name}: {value}" for name, value in self.fields.items())
        return f"{self.id} [{'x' if self.done else ' '}] {self.kind}: {told}"


def place(namespace: str | None, kind: Kind) -> tuple[str, ...]:
    """Return the namespace of an owner's items of a kind; stores take no full stop in one."""
    owner = (namespace or "default").replace("%", "%25").replace(".", "%2E")
    return ("daruma", "assistant", owner, kind)


def id_of(kind: Kind, fields: Mapping[str, Any], key: str, now: float) -> str:
    """Return the id of a new item: that of the call by ``key``, so that a repeat makes no second.

    Without a key it is made of the item and of when it is made.
    """
    made = key or json.dumps([kind, dict(fields), now], sort_keys=True, default=str)
    return f"{kind[0]}-{hashlib.sha256(f'{kind} {made}'.encode()).hexdigest()[:12]}"


async def keep(store: BaseStore, namespace: str | None, item: Item, now: float) -> None:
    """Keep an item under its id, in place of what is there."""
    at = datetime.fromtimestamp(now).astimezone().isoformat(timespec="seconds")
    value = {"kind": item.kind, "fields": dict(item.fields), "done": item.done, "at": at}
    await store.aput(place(namespace, item.kind), item.id, value, index=False)


async def find(store: BaseStore, namespace: str | None, id_: str) -> Item | None:
    """Return the item of an id, None if there is none."""
    for kind in KINDS:
        found = await store.aget(place(namespace, kind), id_)
        if found is not None:
            return _read(found.key, kind, found.value)
    return None


async def remove(store: BaseStore, namespace: str | None, item: Item) -> None:
    """Forget an item."""
    await store.adelete(place(namespace, item.kind), item.id)


async def items(store: BaseStore, namespace: str | None, kind: Kind | None) -> list[Item]:
    """Return the items of a kind, or all, the open ones and the earliest date first."""
    found = [
        _read(each.key, one, each.value)
        for one in ((kind,) if kind else KINDS)
        for each in await store.asearch(place(namespace, one), limit=MOST)
    ]

    def order(item: Item) -> tuple[bool, str, str]:
        dates = (str(each) for name, each in item.fields.items() if name not in ("title", "notes"))
        return item.done, min(dates, default="~"), item.id  # in a form that sorts; no date is last

    return sorted(found, key=order)


def _read(id_: str, kind: Kind, value: Mapping[str, Any]) -> Item:
    return Item(id_, kind, value.get("fields", {}), bool(value.get("done")))


# --- The one form in which the assistant's items are made, and what is asked for (AS-01, TL-19).

_TITLES: Final = dict.fromkeys(("name", "task", "text", "what", "summary"), "title")


def _aliases(field: str, *more: str) -> dict[str, str]:
    names = ("date", "day", "when", *more)
    return {**_TITLES, **dict.fromkeys((each for each in names if each != field), field)}


_WHAT: Final = {"title": "What is it about?"}

CANONICAL: Final[dict[Kind, Canonical]] = {
    "todo": Canonical(
        _aliases("todo_date", "due_date", "on"),
        promote_to="create_schedule_task",
        promote_when=TIMES,
        dates={"todo_date": "date"},
        ask_for={**_WHAT, "todo_date": "On which day is it to be done?"},
    ),
    "schedule_task": Canonical(
        {**_aliases("todo_date", "due_date", "on"), "start": "start_time", "end": "end_time"},
        dates={"todo_date": "date", **dict.fromkeys(TIMES, "time")},
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
        dates={"goal_date": "date"},
        ask_for={**_WHAT, "goal_date": "By when do you want to reach it?"},
    ),
    "reminder": Canonical(
        _aliases(
            "reminder_date", "time", "datetime", "date_time", "remind_at", "due_date", "at", "on"
        ),
        dates={"reminder_date": "date"},
        ask_for={**_WHAT, "reminder_date": "When should I remind you?"},
    ),
}


# --- The assistant's tools for what is kept: to list, complete and delete it.

MOST_LISTED: Final = 100


class ListArgs(ToolArgs):
    """List todos, scheduled tasks, goals and reminders: open ones first, by their dates."""

    kind: Kind | None = Field(default=None, description="Only these; all if left out.")


class OneArgs(ToolArgs):
    id: str = Field(description="Its id, as list_assistant_items shows it.")


class CompleteArgs(OneArgs):
    """Mark a todo, scheduled task, goal or reminder as done."""


class DeleteArgs(OneArgs):
    """Delete a todo, scheduled task, goal or reminder for good."""


async def _list(args: ListArgs, at: Surroundings) -> str:
    found = await items(at.needs_store(), at.settings.memory.namespace, args.kind)
    more = len(found) - MOST_LISTED
    lines = [item.line for item in found[:MOST_LISTED]]
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines) or "There are none."


async def _complete(args: CompleteArgs, at: Surroundings) -> str:
    item = (await _found(args.id, at))._replace(done=True)
    await keep(at.needs_store(), at.settings.memory.namespace, item, at.now())
    return f"Done: {item.line}"


async def _delete(args: DeleteArgs, at: Surroundings) -> str:
    item = await _found(args.id, at)
    await remove(at.needs_store(), at.settings.memory.namespace, item)
    return f"Deleted: {item.line}"


async def _found(id_: str, at: Surroundings) -> Item:
    item = await find(at.needs_store(), at.settings.memory.namespace, id_)
    if item is None:
        raise ToolError(f"there is no item {id_!r}: list_assistant_items shows those there are")
    return item


_CHANGES: Final = partial(shipped_tool, effect="external", toolset="assistant", idempotent=True)

_KEEPING: Final[tuple[Tool, ...]] = (
    shipped_tool("list_assistant_items", ListArgs, "none", _list, toolset="assistant"),
    _CHANGES("complete_assistant_item", CompleteArgs, run=_complete),
    _CHANGES("delete_assistant_item", DeleteArgs, run=_delete),
)


# --- The assistant's tools that make something.

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


def _making(kind: Kind, name: str, args_type: type[Made]) -> Tool:
    """Return a tool with what makes its calls canonical, and the model not shown their key."""
    made = shipped_tool(name, args_type, "external", partial(_make, kind), toolset="assistant")
    shown = {**made.parameters["properties"]}
    del shown[KEY]
    parameters = {**made.parameters, "properties": shown}
    return replace(made, parameters=parameters, idempotency_key=KEY, canonical=CANONICAL[kind])


ASSISTANT_TOOLS: Final[tuple[Tool, ...]] = (
    _making("todo", "create_todo", TodoArgs),
    _making("schedule_task", "create_schedule_task", ScheduleTaskArgs),
    _making("goal", "create_goal", GoalArgs),
    _making("reminder", "create_reminder", ReminderArgs),
    *_KEEPING,
)
