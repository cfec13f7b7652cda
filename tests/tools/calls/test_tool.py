"""Declared aliases and promotions make of every way to say a call the one that is stored."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.parts import a_registry, settings

from daruma.tools.calls import Canonical, Tool
from daruma.tools.calls._tool import canonical_call

GOAL_DATES = ["date", "target_date", "deadline", "due_date", "due", "by"]
WHEN = ["due_time", "due_datetime", "start_time", "end_time"]


ASSISTANT = a_registry().visible(settings().tools, {"assistant"})
NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


def test_the_assistants_calls_become_canonical() -> None:
    """AS-01 and TL-19: a todo with a time is a scheduled task, one with a date stays a todo."""
    args: Any
    becomes: Any
    for name, args, expected, becomes in [
        ("create_todo", {"title": "a"}, "create_todo", {"title": "a"}),
        ("create_todo", {"todo_date": "d"}, "create_todo", {"todo_date": "d"}),
        ("create_todo", {"date": "d"}, "create_todo", {"todo_date": "d"}),
        ("create_todo", {"date": "d", "day": "d"}, "create_todo", {"todo_date": "d"}),
        *(("create_todo", {key: "9"}, "create_schedule_task", {key: "9"}) for key in WHEN),
        (
            "create_todo",
            {"name": "a", "due_time": "9"},
            "create_schedule_task",
            {"title": "a", "due_time": "9"},
        ),
        ("create_todo", {"due_time": None, "end_time": ""}, "create_todo", None),
        ("create_schedule_task", {"title": "a"}, "create_schedule_task", {"title": "a"}),
        ("create_goal", {"by": "d"}, "create_goal", {"goal_date": "d"}),
        *(("create_goal", {key: "d"}, "create_goal", {"goal_date": "d"}) for key in GOAL_DATES),
        ("create_reminder", {"remind_at": "d"}, "create_reminder", {"reminder_date": "d"}),
        ("unheard_of", {"date": "d"}, "unheard_of", {"date": "d"}),
    ]:
        called = canonical_call(name, args, ASSISTANT)

        assert (called.name, called.args) == (expected, args if becomes is None else becomes)
        assert bool(called.changes) is ((name, args) != (called.name, called.args))


def test_what_was_changed_is_said_and_nothing_is_lost() -> None:
    """Of two values for one argument both stay: that they do not fit is for the schema to say.

    TL-06: a call is not promoted to a tool that is not shown.
    """
    assert canonical_call("create_todo", {"date": "d", "due_time": "9"}, ASSISTANT).changes == (
        "create_todo: date is todo_date",
        "create_todo with due_time is create_schedule_task",
    )
    args: Any
    for args in [
        {"date": "1", "todo_date": "2"},
        {"date": "1", "day": "2"},
        {"date": 1, "todo_date": True},
        {"date": None, "todo_date": "2"},
    ]:
        called = canonical_call("create_todo", args, ASSISTANT)

        assert (called.name, called.args, called.changes) == ("create_todo", args, ())
        assert ASSISTANT[0].misfit(called.args) is not None
    assert canonical_call("create_todo", {"due_time": "9"}, [ASSISTANT[0]]).name == "create_todo"


def test_dates_become_iso_after_everything_else() -> None:
    """AS-01: so what is stored does not move with the clock; what is in doubt is said to be."""
    args: Any
    becomes: Any
    unread: Any
    for name, args, becomes, unread in [
        ("create_todo", {"date": "tomorrow"}, {"todo_date": "2026-11-23"}, ()),
        ("create_todo", {"due_time": "9am"}, {"due_time": "09:00"}, ()),
        ("create_goal", {"by": "25.12."}, {"goal_date": "2026-12-25"}, ()),
        (
            "create_reminder",
            {"when": "tomorrow at nine"},
            {"reminder_date": "2026-11-23T09:00+00:00"},
            (),
        ),
        ("create_reminder", {"at": "9am"}, {"reminder_date": "9am"}, ("reminder_date",)),
        ("create_goal", {"goal_date": "some day"}, {"goal_date": "some day"}, ("goal_date",)),
        ("create_goal", {"goal_date": 7}, {"goal_date": 7}, ()),
    ]:
        called = canonical_call(name, args, ASSISTANT, NOW)
        again = canonical_call(called.name, called.args, ASSISTANT, NOW.replace(year=2030))

        assert (called.args, called.unread) == (becomes, unread)
        assert (again.args, again.changes) == (becomes, ())


async def _run(*_: Any) -> str:
    return ""


RUN: Callable[..., Awaitable[str]] = _run


def a_tool(name: str, canonical: Canonical | None) -> Tool:
    return Tool(name, "", {}, RUN, canonical=canonical)


NAMES = st.sampled_from("abc")
CANONICAL = st.none() | st.builds(
    Canonical,
    st.dictionaries(st.sampled_from("xyz"), st.sampled_from("uvw"), max_size=3),
    NAMES,
    st.lists(st.sampled_from("uvwxyz"), max_size=2).map(tuple),
)
VALUES = st.sampled_from([None, "", 0, False, "1", 1, True, [1], {"a": 1}])


@given(
    NAMES,
    st.dictionaries(st.sampled_from("uvwxyz"), VALUES),
    st.lists(CANONICAL, min_size=3, max_size=3),
)
def test_no_value_is_lost_and_circles_end(
    name: str, args: dict[str, Any], declared: list[Canonical | None]
) -> None:
    """TL-19: whatever is declared, also what is refused when the graph is built."""
    called = canonical_call(
        name, args, [a_tool(*each) for each in zip("abc", declared, strict=True)]
    )

    assert {repr(value) for value in called.args.values()} == {repr(v) for v in args.values()}
    assert called.name in "abc"


@given(NAMES, st.dictionaries(st.sampled_from("uvwxyz"), VALUES), CANONICAL, CANONICAL)
def test_what_is_canonical_stays_as_it_is(
    name: str, args: dict[str, Any], first: Canonical | None, second: Canonical | None
) -> None:
    """So that a flow that is resumed may apply it again; promotions lead forwards here."""
    order = "abc"
    tools = [
        a_tool(own, each and Canonical(each.argument_aliases, after, each.promote_when))
        for own, each, after in zip(order, (first, second, None), (*order[1:], None), strict=True)
    ]
    once = canonical_call(name, args, tools)

    assert canonical_call(once.name, once.args, tools) == (once.name, once.args, (), ())
