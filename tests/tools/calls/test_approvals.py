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


async def test_an_approval_rests_on_all_that_its_call_depends_on(tmp_path: Path) -> None:
    """SA-01: a command on its sandbox, what that leaves open, and which programs it finds.

    Another tool of ours on the tree alone, an application's on nothing; never on a lower level.
    """
    work = str(tmp_path)
    found = await grounds(COMMAND, work, tree="t1")

    assert (found.sandbox, found.not_covered, found.tree) == ("landlock", ("metadata",), "t1")
    assert "PATH" in found.environment
    with pytest.raises(SandboxUnavailable):
        await grounds(COMMAND, work, no_sandbox)
    assert await grounds(EDIT, work, no_sandbox, tree="t1") == Grounds(tree="t1")
    for call, workspace in (
        (a_call("c3"), "/w"),
        (a_call("c4", name="gone"), "/w"),
        (COMMAND, None),
    ):
        assert await grounds(call, workspace, no_sandbox, tree="t1") == Grounds()


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


async def test_the_tree_changes_with_the_workspace(tmp_path: Path) -> None:
    """And only with it; one that is gone is said in a line, for the model."""
    first = await tree_now(str(tmp_path))
    again = await tree_now(str(tmp_path))
    (tmp_path / "a").write_text("b")

    assert first == again
    assert await tree_now(str(tmp_path)) != first
    with pytest.raises(ToolError):
        await tree_now(str(tmp_path / "gone"))


# --- Between a yes and the run of a call the world may have become another.


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


async def test_what_may_not_run_any_more_does_not() -> None:
    """TL-12, TL-15: a thread may be resumed under other settings; nothing runs unapproved."""
    await check(a_call("c1"), context())
    for call, policy, said in (
        (a_call("c1", approved="yes"), "deny", "denied by policy"),
        (a_call("c1"), "confirm", "a person has to approve"),
    ):
        with pytest.raises(NotPermitted, match=said):
            await check(call, context(shout=policy))


async def another_sandbox() -> Any:
    return SimpleNamespace(level="namespace", not_covered=())


async def with_network() -> Any:
    return SimpleNamespace(level="namespace", not_covered=("the network",))


async def test_a_yes_is_void_once_what_it_rests_on_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TL-13, TL-13a: asked again right before the run, with the difference, as far as it is kept.

    SA-01: a yes is not stretched to another level, nor to what that leaves open. SE-08: variables
    are named and not shown.
    """
    at = context()
    other, open_ = (replace(at, open_sandbox=each) for each in (another_sandbox, with_network))

    def siblings(place: Path) -> None:
        (place / "new.txt").write_text("by a sibling")
        (place / "old.txt").unlink()

    change: Any
    for number, (then, now, change, said) in enumerate((
        (at, at, siblings, r"old.txt \(gone\), new.txt \(new\)"),
        (at, context(), siblings, "what it rests on has changed"),
        (other, at, str, "the sandbox: none, not namespace"),
        (other, open_, str, "has changed: the sandbox"),
        (at, at, lambda _: monkeypatch.setenv("PATH", "/secret"), "variables: PATH"),
    )):  # fmt: skip
        (place := tmp_path / str(number)).mkdir()
        (place / "old.txt").touch()
        call = await approved(COMMAND, str(place), then)
        await check(call, then, str(place))
        change(place)

        with pytest.raises(GroundsChanged, match=said) as raised:
            await check(call, now, str(place))
        assert "secret" not in str(raised.value)


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
        with pytest.raises(GroundsChanged):
            await check(other, at, str(folder))
