"""What becomes of a call that was cut short, by what it can have changed (DU-06)."""

from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool
from tests.parts import a_call, a_context, settings

from daruma.state.settings import Settings
from daruma.tools.calls.journal import Effect
from daruma.tools.calls.once import effect_of
from daruma.tools.context import Context


def declaring(name: str, **declared: Any) -> BaseTool:
    def act(text: str, key: str = "") -> str:
        """Act."""
        return text + key

    return StructuredTool.from_function(act, name=name, metadata={"daruma": declared})


TOOLS = [
    declaring("plain"),
    declaring("looks", effect="none"),
    declaring("writes", effect="workspace"),
    declaring("same", idempotent=True),
    declaring("keyed", idempotency_key="key"),
]


def context(given: Settings | None = None) -> Context:
    return a_context(tools=TOOLS, given=given or settings(sandbox={"require": "none"}))


async def effect(name: str, given: Settings | None = None, **args: Any) -> Effect | None:
    used = context(given)
    known = used.tools.named(name)
    assert known
    return await effect_of(a_call(name=name, args=args), known, "/ws", used)


@pytest.mark.parametrize(
    ("name", "args", "settled"),
    [
        ("plain", {}, "ask"),
        ("writes", {}, "restore"),
        ("same", {}, "again"),
        ("keyed", {}, "again"),
        ("str_replace_editor", {"command": "create"}, "restore"),
        ("run_tests", {}, "restore"),
        ("run_command", {"command": "pytest -x -q"}, "restore"),
        ("run_command", {"command": "make"}, "ask"),  # not confined: it may have done anything
    ],
)
async def test_a_call_is_settled_by_what_it_can_have_changed(
    name: str, args: dict[str, Any], settled: str
) -> None:
    """Made again, undone and made again, or asked about."""
    found = await effect(name, **args)

    assert found
    assert found.settles == settled


@pytest.mark.parametrize(
    ("name", "args"),
    [("looks", {}), ("search", {"pattern": "x"}), ("str_replace_editor", {"command": "view"})],
)
async def test_what_changes_nothing_is_not_journalled(name: str, args: dict[str, Any]) -> None:
    """It may be made twice, and costs no write."""
    assert await effect(name, **args) is None


@pytest.mark.parametrize(
    ("tools", "settled"),
    [
        ({"in_doubt": "tell"}, "tell"),
        ({"policy": {"plain": {"decision": "allow", "in_doubt": "tell"}}}, "tell"),
        ({"in_doubt": "tell", "policy": {"pl*": {"decision": "allow", "in_doubt": "ask"}}}, "ask"),
        ({"in_doubt": "tell", "policy": {"plain": "allow"}}, "tell"),
    ],
)
async def test_the_policy_says_whether_a_person_is_asked(
    tools: dict[str, Any], settled: str
) -> None:
    """A rule of the call goes before the setting."""
    found = await effect("plain", settings(tools=tools))

    assert found
    assert found.settles == settled


async def test_without_snapshots_nothing_can_be_put_back() -> None:
    """Then a person is asked about edits too."""
    found = await effect("writes", settings(rollback={"snapshots": False}))

    assert found
    assert found.settles == "ask"


async def test_a_command_with_the_network_is_not_confined() -> None:
    """What it sent can not be taken back; what it did not, nobody knows."""
    found = await effect("run_command", settings(sandbox={"network": True}), command="make")

    assert found
    assert found.settles == "ask"


async def test_the_order_of_arguments_is_no_difference() -> None:
    """The digest is of what is done."""
    one = await effect("plain", text="x", key="1")
    two = await effect("plain", key="1", text="x")
    other = await effect("plain", key="2", text="x")

    assert one
    assert other
    assert one == two
    assert one.digest != other.digest
