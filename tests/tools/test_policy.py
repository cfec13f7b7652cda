"""The policy says whether a call runs, waits for a person, or does not run."""

from typing import Any

import pytest
from tests.parts import settings

from daruma.state.settings import PolicyRule, Tools
from daruma.tools.builtin_tools import BUILTIN_TOOLS
from daruma.tools.policy import decide
from daruma.tools.registry import Registry

BUILTIN = {tool.name: tool for tool in BUILTIN_TOOLS}
COMMAND = BUILTIN["run_command"]


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


(SHOUT,) = Registry([shout]).visible(workspace=False)


def policy(**rules: Any) -> Tools:
    return settings(tools={"policy": rules}).tools


@pytest.mark.parametrize(
    "line",
    [
        "pytest",
        "pytest -x -q",
        "python -m pytest -vv tests/test_a.py::test_b",
        "python3 -m pytest",
        "  ruff check src  ",
        "ruff format --check .",
        "git status",
        "git diff",
        "git log --oneline",
    ],
)
def test_known_safe_commands_run_at_once(line: str) -> None:
    """They only look, or run what verification runs anyway."""
    assert decide(COMMAND, {"command": line}, Tools()).decision == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "pytest; rm -rf .",
        "pytest\nrm -rf .",
        "pytest && rm x",
        "pytest | sh",
        "pytest > conftest.py",
        "pytest $(rm x)",
        "pytest `rm x`",
        "pytest ../elsewhere",
        "pytest tests/../../elsewhere",
        "pytest /etc",
        "pytest ~/x",
        "pytest -p evil",
        "pytest --rootdir=/",
        "ruff check --fix",
        "ruff format .",
        "git push",
        "git diff --output=x",
        "git log --oneline --output=x",
        "xpytest",
        "",
    ],
)
def test_all_other_commands_are_confirmed(line: str) -> None:
    """Whole lines are compared: nothing may be hung on to a safe one."""
    rule = decide(COMMAND, {"command": line}, Tools())

    assert (rule.decision, rule.required) == ("confirm", False)
    assert rule.reason


@pytest.mark.parametrize("args", [{}, {"command": ["pytest"]}, {"command": None}])
def test_a_command_that_is_no_text_is_not_safe(args: dict[str, Any]) -> None:
    """What can not be read is not taken for harmless."""
    assert decide(COMMAND, args, Tools()).decision == "confirm"


def test_a_safe_command_elsewhere_is_confirmed() -> None:
    """In another directory the same words may run other things."""
    assert decide(COMMAND, {"command": "pytest", "cwd": "sub"}, Tools()).decision == "confirm"


@pytest.mark.parametrize("tool", [*BUILTIN.values(), SHOUT], ids=lambda tool: tool.name)
def test_what_is_no_command_is_allowed(tool: Any) -> None:
    """Looking and editing in the workspace, and the tools that the application passed in."""
    if tool is not COMMAND:
        assert decide(tool, {"command": "rm -rf ."}, Tools()).decision == "allow"


def test_an_applications_own_run_command_is_its_own_affair() -> None:
    """Only the built-in tool is known to take a shell line."""
    assert decide(SHOUT, {"command": "rm"}, Tools()).decision == "allow"


@pytest.mark.parametrize(
    ("rules", "decision"),
    [
        ({"shout": "deny"}, "deny"),
        ({"sh*": "confirm"}, "confirm"),
        ({"*": "deny", "shout": "allow"}, "allow"),
        ({"shout": "allow", "*": "deny"}, "allow"),
        ({"sh*": "confirm", "*": "deny"}, "confirm"),
        ({"*": "deny", "sh*": "confirm"}, "deny"),
        ({"SHOUT": "deny"}, "allow"),
        ({"other": "deny"}, "allow"),
    ],
)
def test_the_users_rules_come_first(rules: dict[str, str], decision: str) -> None:
    """An exact name beats a pattern; among patterns the first one given counts."""
    assert decide(SHOUT, {}, policy(**rules)).decision == decision


def test_the_users_rule_goes_over_the_built_in_one() -> None:
    """A safe command can be denied, any other one allowed."""
    assert decide(COMMAND, {"command": "pytest"}, policy(run_command="deny")).decision == "deny"
    assert decide(COMMAND, {"command": "rm x"}, policy(run_command="allow")).decision == "allow"


def test_a_rule_keeps_all_it_says() -> None:
    """TL-13: whether it is required, what a denial does, and why."""
    given = {"decision": "confirm", "required": True, "deny_effect": "continue", "reason": "why"}

    assert decide(SHOUT, {}, policy(shout=given)) == PolicyRule.model_validate(given)
