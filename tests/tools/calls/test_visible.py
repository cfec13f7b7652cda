"""What a task's model is offered: the tools that it sees (TL-06), the rules, and the time."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.parts import TOOLSET_TOOLS, a_context, a_registry, a_task, settings

from daruma.tools.calls import Canonical, Tool, VisibleTools, local_time
from daruma.tools.calls._tool import Effect
from daruma.tools.context import Context, offer_of

# --- Local time is that of a zone by its name, or of the machine.

WINTER, SUMMER = 1796040000.0, 1783080000.0


def test_a_zone_is_named() -> None:
    """Whatever the machine's is."""
    assert local_time(WINTER, "Asia/Tokyo").isoformat() == "2026-11-30T21:00:00+09:00"


def test_the_machines_own_zone_knows_summer_and_winter(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset of today would move a date of the other half of the year by an hour."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        now = local_time(WINTER, None)
        summer = datetime(2026, 7, 1, 9, 0, tzinfo=now.tzinfo)

        assert now == datetime.fromtimestamp(WINTER, UTC)
        assert now.isoformat() == "2026-11-30T13:00:00+01:00"
        assert summer.isoformat() == "2026-07-01T09:00:00+02:00"
        assert (now.tzname(), now.dst()) == ("CET", None)
    finally:
        monkeypatch.undo()
        time.tzset()


# --- What a task's model is offered, and with what care its calls are repaired.

BUILTIN = {"str_replace_editor", "search", "run_command", "run_tests"}
SETS = {tool.name for tool in TOOLSET_TOOLS}
"""Shown where there is a store, or skills, or where they are asked for."""


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def test_a_task_in_a_workspace_is_offered_all_tools() -> None:
    """TL-06: nothing is hidden without a profile but the sets that nobody asked for."""
    offer = offer_of(a_task(workspace="/w"), a_context(tools=[shout]))

    assert set(offer.names) == BUILTIN | {"shout", "read_output"}
    assert offer.hidden == SETS


def test_the_built_in_tools_are_hidden_without_a_workspace() -> None:
    """TL-06: they are there, and not shown."""
    offer = offer_of(a_task(), a_context(tools=[shout]))

    assert offer.names == ("shout", "read_output")
    assert offer.hidden == BUILTIN | SETS
    assert offer.find("search") is None


def test_reading_on_is_offered_where_there_is_something_to_read() -> None:
    """Beside tools that bring results, whatever the profile; recovery may hide it too."""
    context = a_context(tools=[shout], given=settings(tools={"profile": "all"}))
    narrow = settings(tools={"profile": "own", "profiles": {"own": ["shout"]}})
    alone = settings(tools={"profile": "librarian_retrieval"})

    assert offer_of(a_task(), context, reading=False).names == ("shout",)
    assert offer_of(a_task(), a_context(tools=[shout], given=narrow)).names[1:] == ("read_output",)
    assert offer_of(a_task(), a_context(tools=[shout], given=alone)).names == ()
    assert offer_of(a_task(), context, {"read_output"}).names == ("shout",)


@pytest.mark.parametrize("task", [None, a_task("direct_chat", workspace="/w")])
def test_direct_chat_is_offered_nothing(task: Any) -> None:
    """MO-01: one answer, no tools; the settings are the run's all the same."""
    given = settings(tools={"normalize_names": False})

    offer = offer_of(task, a_context(tools=[shout], given=given))

    assert offer == VisibleTools(settings=given.tools)


async def unused(*_: Any) -> str:
    raise AssertionError("nothing runs here")


def a_tool(name: str, effect: Effect, promote_to: str | None = None) -> Tool:
    canonical = Canonical({}, promote_to, ("amount",)) if promote_to else None
    return Tool(name, "", {}, unused, effect=effect, canonical=canonical)


@pytest.mark.parametrize(
    ("tools", "effect"),
    [
        ([a_tool("look", "none")], "none"),
        ([a_tool("look", "none", "pay")], "none"),
        ([a_tool("look", "none", "pay"), a_tool("pay", "external")], "external"),
        ([a_tool("look", "none", "ask"), a_tool("ask", "none")], "none"),
        (
            [
                a_tool("look", "none", "ask"),
                a_tool("ask", "none", "pay"),
                a_tool("pay", "external"),
            ],
            "external",
        ),
        ([a_tool("look", "workspace", "pay"), a_tool("pay", "none")], "workspace"),
    ],
)
def test_a_call_is_repaired_with_the_care_of_what_it_may_become(
    tools: list[Tool], effect: Effect
) -> None:
    """TL-10 and TL-19: as far as it is shown."""
    careful = VisibleTools(tuple(tools)).cautious(tools[0])

    assert (careful.name, careful.effect) == ("look", effect)


def test_the_time_is_told_where_a_tool_takes_dates() -> None:
    """The zone's rules are looked up for nobody else."""
    dated = replace(a_tool("book", "none"), canonical=Canonical(dates={"day": "date"}))
    plain = a_tool("look", "none")

    assert offer_of(a_task(), showing(plain)).now is None
    assert offer_of(a_task(), showing(plain, dated)).now is not None


def showing(*tools: Tool) -> Context:
    """Return a context whose registry has these tools beside its own."""
    context = a_context()
    registry = a_registry()
    registry._tools = {tool.name: tool for tool in tools}
    return replace(context, tools=registry)
