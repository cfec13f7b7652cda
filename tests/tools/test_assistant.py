"""What the assistant keeps is kept once, found, done with and deleted again."""

from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from tests.parts import settings

from daruma.tools.assistant import ASSISTANT_TOOLS, KINDS, items, place
from daruma.tools.calls import Surroundings
from daruma.tools.errors import ToolError

TOOLS = {tool.name: tool for tool in ASSISTANT_TOOLS}
TITLE = {"title": "Milk"}


def around(store: InMemoryStore | None, namespace: str | None = None) -> Surroundings:
    given = settings(memory={"namespace": namespace})
    return Surroundings(store=store, settings=given, now=lambda: 100.0)


async def called(name: str, args: Mapping[str, Any], at: Surroundings) -> str:
    return await TOOLS[name].run(args, at)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("create_todo", {"todo_date": "2026-11-25"}),
        ("create_schedule_task", {"due_time": "09:00"}),
        ("create_goal", {"goal_date": "2026-11-25"}),
        ("create_reminder", {"reminder_date": "2026-11-25"}),
    ],
)
async def test_what_is_made_is_listed(name: str, args: dict[str, Any]) -> None:
    """In its kind, and with its id."""
    at = around(InMemoryStore())
    kind = name.removeprefix("create_")

    said = await called(name, TITLE | args, at)
    listed = await called("list_assistant_items", {"kind": kind}, at)

    ((field, value),) = args.items()
    assert said == f"Kept: {listed}"
    assert listed.endswith(f" [ ] {kind}: title: Milk, {field}: {value}")


async def test_a_call_that_is_made_again_makes_no_second() -> None:
    """DU-06: it has the same key; another call of the same words has another one."""
    at = around(InMemoryStore())

    first = await called("create_todo", {**TITLE, "call_key": "a"}, at)
    again = await called("create_todo", {**TITLE, "call_key": "a"}, at)
    other = await called("create_todo", {**TITLE, "call_key": "b"}, at)

    assert first == again != other
    assert len(await items(at.needs_store(), None, "todo")) == 2


async def test_an_item_is_done_with_and_deleted() -> None:
    """Done ones are listed last; deleted ones not at all."""
    at = around(InMemoryStore())
    await called("create_todo", {"title": "a", "call_key": "1"}, at)
    await called("create_todo", {"title": "b", "call_key": "2"}, at)
    first, second = await items(at.needs_store(), None, "todo")

    done = await called("complete_assistant_item", {"id": first.id}, at)
    listed = (await called("list_assistant_items", {}, at)).splitlines()
    await called("delete_assistant_item", {"id": second.id}, at)

    assert done == f"Done: {listed[1]}"
    assert "[x]" in listed[1]
    assert [item.id for item in await items(at.needs_store(), None, None)] == [first.id]


async def test_owners_do_not_see_each_other() -> None:
    """Also where their names have what a store can not have in a namespace."""
    store = InMemoryStore()
    await called("create_todo", TITLE, around(store, "me@example.org"))

    listed = await called("list_assistant_items", {}, around(store, "me@example"))

    assert listed == "There are none."
    assert len({place(name, KINDS[0]) for name in ("a.b", "a%2Eb", "a_b", None)}) == 4


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("create_todo", TITLE, "built without a store"),
        ("create_todo", {"title": ""}, "title: String should have at least 1 character"),
        ("create_schedule_task", TITLE, "give one of due_time, due_datetime, start_time, end"),
    ],
)
async def test_what_can_not_be_kept_is_said(name: str, args: dict[str, Any], said: str) -> None:
    """In one clear line."""
    with pytest.raises(ToolError, match=said):
        await called(name, args, around(None))


@pytest.mark.parametrize("name", ["complete_assistant_item", "delete_assistant_item"])
async def test_an_unknown_item_is_said_to_be(name: str) -> None:
    """With where to look."""
    with pytest.raises(ToolError, match="no item 't-1': list_assistant_items shows"):
        await called(name, {"id": "t-1"}, around(InMemoryStore()))


async def test_long_lists_are_cut() -> None:
    """The model is told of how many more there are."""
    at = around(InMemoryStore())
    for number in range(102):
        await called("create_todo", {"title": str(number)}, at)

    assert (await called("list_assistant_items", {}, at)).endswith("\nand 2 more")


def test_models_are_not_shown_the_key_of_a_call() -> None:
    """It is the machine's; making is repeated by it, the rest can be repeated as it is."""
    making = [tool for tool in TOOLS.values() if tool.name.startswith("create_")]

    assert all("call_key" not in tool.parameters["properties"] for tool in TOOLS.values())
    assert all(tool.idempotency_key == "call_key" for tool in making)
    assert all(tool.repeatable or tool.effect == "none" for tool in TOOLS.values())
