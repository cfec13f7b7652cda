"""Approvals: what they rest on, the question, the decision, and the last look before the run."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.parts import a_call, a_context, a_registry, no_sandbox, settings

from daruma.state.calls import Grounds, ToolTask
from daruma.tools.calls import check_permission, open_approvals
from daruma.tools.calls._approvals import OpenSandbox, endless_changes, grounds_of, tree_now
from daruma.tools.context import Context
from daruma.tools.errors import GroundsChanged, NotPermitted, ToolError
from daruma.tools.sandbox import SandboxUnavailable

# --- What an approval rests on: for commands all that confines them, for the rest the workspace.

COMMAND = a_call("c1", name="run_command", args={"command": "make"})
EDIT = a_call("c2", name="str_replace_editor")


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


async def confining() -> Any:
    return SimpleNamespace(level="landlock", not_covered=("metadata",))


TOOLS = a_registry([shout])


async def grounds(
    call: ToolTask,
    workspace: str | None,
    open_sandbox: OpenSandbox = confining,
    *,
    tree: str = "",
) -> Grounds:
    return await grounds_of(call, TOOLS.named(call.name), workspace, open_sandbox, tree=tree)


async def test_a_command_rests_on_its_sandbox_its_environment_and_the_tree(tmp_path: Path) -> None:
    """SA-01: the level, what that leaves open, and which programs it finds."""
    found = await grounds(COMMAND, str(tmp_path), tree="t1")

    assert (found.sandbox, found.not_covered, found.tree) == ("landlock", ("metadata",), "t1")
    assert "PATH" in found.environment


async def test_what_differs_between_terminals_is_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes that was given in one holds in the other, but not with another PATH."""
    before = await grounds(COMMAND, str(tmp_path))
    for name in ("TERM", "LANG", "TZ", "LC_ALL"):
        monkeypatch.setenv(name, "another")
    cosmetic = await grounds(COMMAND, str(tmp_path))
    monkeypatch.setenv("PATH", "/another")

    assert cosmetic == before
    assert await grounds(COMMAND, str(tmp_path)) != before


async def test_another_tool_of_ours_rests_on_the_tree_alone(tmp_path: Path) -> None:
    """No sandbox is opened for it."""
    assert await grounds(EDIT, str(tmp_path), no_sandbox, tree="t1") == Grounds(tree="t1")


async def test_what_works_in_no_workspace_rests_on_nothing() -> None:
    """Tools of the application know no sandbox."""
    call: Any
    workspace: Any
    for call, workspace in [
        (a_call("c3"), "/w"),
        (a_call("c4", name="gone"), "/w"),
        (COMMAND, None),
    ]:
        assert await grounds(call, workspace, no_sandbox, tree="t1") == Grounds()


async def test_a_sandbox_that_is_not_to_be_had_is_said(tmp_path: Path) -> None:
    """SA-01: never a lower level instead."""
    with pytest.raises(SandboxUnavailable):
        await grounds(COMMAND, str(tmp_path), no_sandbox)


async def test_the_tree_changes_with_the_workspace(tmp_path: Path) -> None:
    """And only with it."""
    first = await tree_now(str(tmp_path))
    again = await tree_now(str(tmp_path))
    (tmp_path / "a").write_text("b")

    assert first == again
    assert await tree_now(str(tmp_path)) != first


async def test_a_workspace_that_is_gone_is_said(tmp_path: Path) -> None:
    """One line, for the model."""
    with pytest.raises(ToolError):
        await tree_now(str(tmp_path / "gone"))


# --- Between a yes and the run of a call the world may have become another.

COMMAND_PERMISSION = a_call("c1", name="run_command", args={"command": "make all"})


def context(**policy: Any) -> Context:
    return a_context(tools=[shout], given=settings(tools={"policy": policy}))


async def approved(call: ToolTask, workspace: str, at: Context) -> ToolTask:
    waiting = [replace(call, status="awaiting")]
    opened = await open_approvals(waiting, workspace, at.tools, at.open_sandbox, at.outputs)
    return opened.approvals[0].approve(call)


async def check(call: ToolTask, at: Context, workspace: str | None = None) -> None:
    tool = at.tools.named(call.name)
    assert tool is not None
    await check_permission(call, tool, workspace, await at.surroundings(None), at.tools)


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
    """TL-13a: as long as nothing has changed."""
    at = context()
    call = await approved(COMMAND_PERMISSION, str(tmp_path), at)

    await check(call, at, str(tmp_path))


async def test_what_was_approved_for_another_content_may_not(tmp_path: Path) -> None:
    """TL-13a: right before the call runs, with the difference."""
    at = context()
    (tmp_path / "old.txt").touch()
    call = await approved(COMMAND_PERMISSION, str(tmp_path), at)
    (tmp_path / "new.txt").write_text("by a sibling")
    (tmp_path / "old.txt").unlink()

    with pytest.raises(GroundsChanged, match=r"old.txt \(gone\), new.txt \(new\)"):
        await check(call, at, str(tmp_path))


async def test_variables_that_changed_are_named_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-13a, SE-08: their values may be keys."""
    at = context()
    call = await approved(COMMAND_PERMISSION, str(tmp_path), at)
    monkeypatch.setenv("PATH", "/secret")

    with pytest.raises(GroundsChanged, match="variables: PATH") as raised:
        await check(call, at, str(tmp_path))
    assert "secret" not in str(raised.value)


async def test_what_nobody_knows_any_more_is_asked_again(tmp_path: Path) -> None:
    """TL-13a: without the difference, where what was seen then is not kept."""
    call = await approved(COMMAND_PERMISSION, str(tmp_path), context())
    (tmp_path / "new.txt").touch()

    with pytest.raises(GroundsChanged, match="what it rests on has changed"):
        await check(call, context(), str(tmp_path))


def test_only_what_never_stands_still_is_given_up() -> None:
    """TL-13a: what an approved sibling changed does not count, or the last of many never ran."""
    for voids, ran, over in (
        ((0, 2), 0, set[str]()),
        ((3, 2), 0, {"c0"}),
        ((3, 4), 1, {"c1"}),
        ((3, 4), 2, set[str]()),
    ):
        asked = [a_call(f"c{n}", "awaiting", voided=number) for n, number in enumerate(voids)]
        done = [a_call(f"d{n}", "done", approved="x") for n in range(ran)]

        assert endless_changes([*asked, *done, a_call("e", "done")]) == over


async def another_sandbox() -> Any:
    return SimpleNamespace(level="namespace", not_covered=())


async def test_what_was_approved_for_another_sandbox_may_not(tmp_path: Path) -> None:
    """SA-01: a level is never lowered silently, nor is a yes stretched to another one."""
    at = context()
    confined = replace(at, open_sandbox=another_sandbox)
    call = await approved(COMMAND_PERMISSION, str(tmp_path), confined)

    with pytest.raises(GroundsChanged, match="the sandbox: none, not namespace"):
        await check(call, at, str(tmp_path))


async def with_network() -> Any:
    return SimpleNamespace(level="namespace", not_covered=("the network",))


async def test_what_was_approved_without_the_network_may_not_with_it(tmp_path: Path) -> None:
    """TL-13: the level is the same, what it leaves open is not what was shown."""
    at = context()
    confined = replace(at, open_sandbox=another_sandbox)
    call = await approved(COMMAND_PERMISSION, str(tmp_path), confined)

    with pytest.raises(GroundsChanged):
        await check(call, replace(at, open_sandbox=with_network), str(tmp_path))


async def test_a_yes_to_something_else_is_none(tmp_path: Path) -> None:
    """TL-13: other arguments, another folder, another call of the same."""
    at = context()
    call = await approved(COMMAND_PERMISSION, str(tmp_path), at)
    (tmp_path / "sub").mkdir()

    for other, folder in (
        (replace(call, args={"command": "make none"}), tmp_path),
        (replace(call, message_id="m2"), tmp_path),
        (call, tmp_path / "sub"),
    ):
        with pytest.raises(GroundsChanged):
            await check(other, at, str(folder))
