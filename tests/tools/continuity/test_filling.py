"""A call goes on with what was known of it, where it is the one that was meant."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import settings

from daruma.state.conversation import Clarification
from daruma.tools.calls.registry import Registry
from daruma.tools.calls.resolve import filled, tool_tasks
from daruma.tools.calls.visible import Offer

MILK = Clarification(
    call_id="m:1",
    target_action="create_reminder",
    partial_args={"title": "Milk", "notes": "cold"},
    missing_fields=("reminder_date",),
    status="resumed",
)
BREAD = replace(MILK, call_id="m:2", partial_args={"title": "Bread"})
TIMED = replace(
    MILK, target_action="create_schedule_task", partial_args={"due_time": "09:00"}, call_id="m:3"
)
DAY = "2031-05-05"


def offer(*known: Clarification) -> Offer:
    tools = Registry().visible(settings().tools, {"assistant"})
    return Offer(tools, asks=True, resuming=known)


@pytest.mark.parametrize(
    ("args", "whole"),
    [
        ({}, {"title": "Milk", "notes": "cold"}),
        ({"date": DAY}, {"title": "Milk", "notes": "cold", "reminder_date": DAY}),
        ({"title": "Milk", "date": DAY}, {"title": "Milk", "notes": "cold", "reminder_date": DAY}),
        ({"title": "Eggs", "date": DAY}, {"title": "Eggs", "reminder_date": DAY}),
        ({"notes": "warm"}, {"title": "Milk", "notes": "warm"}),
    ],
)
def test_what_the_call_gives_wins(args: dict[str, Any], whole: dict[str, Any]) -> None:
    """One that says something else than was known is given only what it can not do without."""
    found = filled("create_reminder", args, offer(MILK))

    assert (found.call.args, found.continues) == (whole, "m:1")


def test_a_call_of_another_tool_is_left_alone() -> None:
    """As is any call where nothing is known."""
    assert filled("create_todo", {"title": "a"}, offer(MILK)).call.args == {"title": "a"}
    assert filled("create_reminder", {}, offer(), "m:9") == (
        (("create_reminder", {}, (), ())),
        "m:9",
    )


def test_a_call_by_the_name_it_was_promoted_from_goes_on() -> None:
    """What is known makes a scheduled task of the todo, as it did before."""
    found = filled("create_todo", {"title": "Milk"}, offer(TIMED))

    assert found.call.name == "create_schedule_task"
    assert found.call.args == {"title": "Milk", "due_time": "09:00"}


def test_no_two_calls_go_on_with_the_same() -> None:
    """In their order, unless one names what it is about."""
    by_order = titles({"date": DAY}, {"date": DAY})
    by_name = titles({"title": "Bread", "date": DAY}, {"date": DAY})

    assert by_order == [("Milk", "m:1"), ("Bread", "m:2")]
    assert by_name == [("Bread", "m:2"), ("Milk", "m:1")]


def titles(*calls: dict[str, Any]) -> list[tuple[str, str]]:
    """The titles of the tasks that calls of create_reminder become, and what they go on with."""
    made = [{"name": "create_reminder", "args": a, "id": f"c{n}"} for n, a in enumerate(calls)]
    tasks = tool_tasks(AIMessage("", tool_calls=made, id="m"), offer(MILK, BREAD))
    return [(task.args["title"], task.continues) for task in tasks]
