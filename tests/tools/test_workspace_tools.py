"""The tools that ship work in the workspace, and tell the model what was wrong with a call."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import WORKSPACE_TOOLS, no_sandbox

from daruma.tools.calls import Surroundings, Tool
from daruma.tools.errors import ToolError
from daruma.tools.files import EditHistory, Workspace

TOOLS = {tool.name: tool for tool in WORKSPACE_TOOLS}


@pytest.fixture
def at(tmp_path: Path) -> Surroundings:
    """A workspace with one file."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\n")
    return Surroundings(Workspace(tmp_path / "work"), EditHistory(tmp_path / "history"), 5.0)


async def run(name: str, at: Surroundings, **args: Any) -> str:
    return await TOOLS[name].run(args, at)


def test_four_tools_ship() -> None:
    """ED-01 and VE-01; what each changes is declared."""
    assert {name: tool.effect for name, tool in TOOLS.items()} == {
        "str_replace_editor": "workspace",
        "search": "none",
        "run_command": "workspace",
        "run_tests": "workspace",
    }


@pytest.mark.parametrize("tool", WORKSPACE_TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_described_by_a_closed_schema(tool: Tool) -> None:
    """TL-07: unknown keys are refused already by what the model is shown."""
    assert tool.description
    assert tool.parameters["type"] == "object"
    assert tool.parameters["additionalProperties"] is False


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("str_replace_editor", {"command": "view", "path": "a.txt"}),
        ("search", {"pattern": "one"}),
        ("run_command", {"command": "cat a.txt"}),
    ],
)
async def test_a_tool_works_in_the_workspace(
    name: str, args: dict[str, Any], at: Surroundings
) -> None:
    """Each shows the file's one line."""
    assert "one" in await run(name, at, **args)


async def test_run_tests_says_when_there_is_nothing_to_run(at: Surroundings) -> None:
    """VE-02."""
    assert await run("run_tests", at) == "nothing to check"


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("run_command", {}, "command: Field required"),
        ("run_command", {"command": ["ls"]}, "command: Input should be a valid string"),
        ("run_tests", {"verbose": True}, "verbose: Extra inputs are not permitted"),
        ("search", {"pattern": "x", "glop": "y"}, "glop: Extra inputs"),
    ],
)
async def test_wrong_arguments_are_told_in_one_line(
    name: str, args: dict[str, Any], said: str, at: Surroundings
) -> None:
    """All that is wrong, by key, so that the model can mend it."""
    with pytest.raises(ToolError, match=r"^invalid arguments: ") as refused:
        await run(name, at, **args)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("str_replace_editor", {"command": "view", "path": "a.txt"}),
        ("search", {"pattern": "one"}),
        ("run_command", {"command": "true"}),
        ("run_tests", {}),
    ],
)
async def test_without_a_workspace_there_is_nothing_to_work_in(
    name: str, args: dict[str, Any]
) -> None:
    """Said in words, not as a bug."""
    with pytest.raises(ToolError, match="needs a workspace"):
        await run(name, Surroundings(), **args)


@pytest.mark.parametrize(
    ("name", "args"), [("run_command", {"command": "true"}), ("run_tests", {})]
)
async def test_a_sandbox_that_can_not_be_had_is_told(
    name: str, args: dict[str, Any], at: Surroundings
) -> None:
    """SA-02: the model hears that nothing was run, and why."""
    at.needs_workspace().root.joinpath("pyproject.toml").touch()

    with pytest.raises(ToolError, match=r"^sandbox_violation: not here$"):
        await run(name, replace(at, open_sandbox=no_sandbox), **args)
