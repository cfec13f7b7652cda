"""Between a yes and the run of a call the world may have become another."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.parts import a_call, a_context, settings

from daruma.state.calls import ToolTask, approval_of
from daruma.tools.calls.approvals import check_permission, grounds_of
from daruma.tools.context import Context
from daruma.tools.errors import NotPermitted

COMMAND = a_call("c1", name="run_command", args={"command": "make all"})


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def context(**policy: Any) -> Context:
    return a_context(tools=[shout], given=settings(tools={"policy": policy}))


async def approved(call: ToolTask, workspace: str, at: Context) -> ToolTask:
    exact = approval_of(call, workspace, await grounds_of(call, workspace, at)).exact
    return replace(call, approved=exact)


async def check(call: ToolTask, at: Context, workspace: str | None = None) -> None:
    tool = at.tools.named(call.name)
    assert tool is not None
    await check_permission(call, tool, workspace, at)


async def test_what_needs_nobody_may_run() -> None:
    """TL-12: allowed without a rule."""
    await check(a_call("c1"), context())


async def test_what_the_policy_now_denies_may_not() -> None:
    """A thread may be resumed under other settings."""
    with pytest.raises(NotPermitted, match="denied by policy"):
        await check(replace(a_call("c1"), approved="yes"), context(shout="deny"))


async def test_what_now_needs_a_person_may_not_without_one() -> None:
    """TL-15: never unapproved."""
    with pytest.raises(NotPermitted, match="a person has to approve"):
        await check(a_call("c1"), context(shout="confirm"))


async def test_what_was_approved_may_run(tmp_path: Path) -> None:
    """The workspace's content may have changed since: other calls run beside this one."""
    at = context()
    call = await approved(COMMAND, str(tmp_path), at)
    (tmp_path / "new.txt").write_text("by a sibling")

    await check(call, at, str(tmp_path))


async def another_sandbox() -> Any:
    return SimpleNamespace(level="namespace", not_covered=())


async def test_what_was_approved_for_another_sandbox_may_not(tmp_path: Path) -> None:
    """SA-01: a level is never lowered silently, nor is a yes stretched to another one."""
    confined = replace(context(), open_sandbox=another_sandbox)
    call = await approved(COMMAND, str(tmp_path), confined)

    with pytest.raises(NotPermitted, match="is not what would run now"):
        await check(call, context(), str(tmp_path))


async def with_network() -> Any:
    return SimpleNamespace(level="namespace", not_covered=("the network",))


async def test_what_was_approved_without_the_network_may_not_with_it(tmp_path: Path) -> None:
    """TL-13: the level is the same, what it leaves open is not what was shown."""
    confined = replace(context(), open_sandbox=another_sandbox)
    call = await approved(COMMAND, str(tmp_path), confined)

    with pytest.raises(NotPermitted, match="is not what would run now"):
        await check(call, replace(context(), open_sandbox=with_network), str(tmp_path))


async def test_a_yes_to_something_else_is_none(tmp_path: Path) -> None:
    """TL-13: other arguments, another folder, another call of the same."""
    at = context()
    call = await approved(COMMAND, str(tmp_path), at)
    (tmp_path / "sub").mkdir()

    for other, folder in (
        (replace(call, args={"command": "make none"}), tmp_path),
        (replace(call, message_id="m2"), tmp_path),
        (call, tmp_path / "sub"),
    ):
        with pytest.raises(NotPermitted):
            await check(other, at, str(folder))
