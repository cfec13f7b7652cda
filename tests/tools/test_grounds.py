"""What an approval rests on: for commands all that confines them, for the rest the workspace."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.parts import a_call, a_context, no_sandbox

from daruma.state.calls import Grounds
from daruma.tools.calls.approvals import grounds_of, tree_now
from daruma.tools.errors import ToolError
from daruma.tools.sandbox.sandbox import SandboxUnavailable

COMMAND = a_call("c1", name="run_command", args={"command": "make"})
EDIT = a_call("c2", name="str_replace_editor")


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


async def confining() -> Any:
    return SimpleNamespace(level="landlock", not_covered=("metadata",))


CONTEXT = replace(a_context(tools=[shout]), open_sandbox=confining)


async def test_a_command_rests_on_its_sandbox_its_environment_and_the_tree(tmp_path: Path) -> None:
    """SA-01: the level, what that leaves open, and which programs it finds."""
    found = await grounds_of(COMMAND, str(tmp_path), CONTEXT, tree="t1")

    assert (found.sandbox, found.not_covered, found.tree) == ("landlock", ("metadata",), "t1")
    assert "PATH" in found.environment


async def test_what_differs_between_terminals_is_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A yes that was given in one holds in the other, but not with another PATH."""
    before = await grounds_of(COMMAND, str(tmp_path), CONTEXT)
    for name in ("TERM", "LANG", "TZ", "LC_ALL"):
        monkeypatch.setenv(name, "another")
    cosmetic = await grounds_of(COMMAND, str(tmp_path), CONTEXT)
    monkeypatch.setenv("PATH", "/another")

    assert cosmetic == before
    assert await grounds_of(COMMAND, str(tmp_path), CONTEXT) != before


async def test_another_tool_of_ours_rests_on_the_tree_alone(tmp_path: Path) -> None:
    """No sandbox is opened for it."""
    context = replace(CONTEXT, open_sandbox=no_sandbox)

    assert await grounds_of(EDIT, str(tmp_path), context, tree="t1") == Grounds(tree="t1")


@pytest.mark.parametrize(
    ("call", "workspace"),
    [(a_call("c3"), "/w"), (a_call("c4", name="gone"), "/w"), (COMMAND, None)],
)
async def test_what_works_in_no_workspace_rests_on_nothing(call: Any, workspace: Any) -> None:
    """Tools of the application know no sandbox."""
    context = replace(CONTEXT, open_sandbox=no_sandbox)

    assert await grounds_of(call, workspace, context, tree="t1") == Grounds()


async def test_a_sandbox_that_is_not_to_be_had_is_said(tmp_path: Path) -> None:
    """SA-01: never a lower level instead."""
    with pytest.raises(SandboxUnavailable):
        await grounds_of(COMMAND, str(tmp_path), replace(CONTEXT, open_sandbox=no_sandbox))


async def test_the_tree_changes_with_the_workspace(tmp_path: Path) -> None:
    """And only with it; a task without a workspace has none."""
    first = await tree_now(str(tmp_path), CONTEXT)
    again = await tree_now(str(tmp_path), CONTEXT)
    (tmp_path / "a").write_text("b")

    assert first == again
    assert await tree_now(str(tmp_path), CONTEXT) != first
    assert await tree_now(None, CONTEXT) == ""


async def test_a_workspace_that_is_gone_is_said(tmp_path: Path) -> None:
    """One line, for the model."""
    with pytest.raises(ToolError):
        await tree_now(str(tmp_path / "gone"), CONTEXT)
