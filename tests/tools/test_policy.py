"""The policy says whether a call runs, waits for a person, or does not run."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import settings

from daruma.state.settings.tools import PolicyRule, Tools
from daruma.tools.builtin_tools import BUILTIN_TOOLS
from daruma.tools.calls.policy.policy import decide
from daruma.tools.calls.registry import Registry

BUILTIN = {tool.name: tool for tool in BUILTIN_TOOLS}
COMMAND = BUILTIN["run_command"]


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


(SHOUT,) = Registry([shout]).visible(Tools(), ())


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
        ({"*": "deny", "shout": "allow"}, "deny"),
        ({"shout": "allow", "*": "deny"}, "deny"),
        ({"*": "confirm", "shout": "allow"}, "allow"),
        ({"shout(text=*)": "confirm", "shout": "allow"}, "confirm"),
        ({"shout": "confirm", "sh*(text=*)": "allow"}, "allow"),
        ({"sh*(text=*)": "confirm", "shout(text=*)": "allow"}, "allow"),
        ({"sh*": "confirm", "*": "allow"}, "confirm"),
        ({"*": "allow", "sh*": "confirm"}, "allow"),
        ({"shout(text=quiet)": "deny", "shout": "confirm"}, "confirm"),
        ({"SHOUT": "deny"}, "allow"),
        ({"other": "deny"}, "allow"),
    ],
)
def test_the_order_of_rules(rules: dict[str, str], decision: str) -> None:
    """Deny, then arguments before none, an exact name before a pattern, then the first given."""
    assert decide(SHOUT, {"text": "hey"}, policy(**rules)).decision == decision


def test_the_users_rule_goes_over_the_built_in_one() -> None:
    """A safe command can be denied, any other one allowed."""
    assert decide(COMMAND, {"command": "pytest"}, policy(run_command="deny")).decision == "deny"
    assert decide(COMMAND, {"command": "rm x"}, policy(run_command="allow")).decision == "allow"


def test_a_rule_keeps_all_it_says() -> None:
    """TL-13: whether it is required, what a denial does, and why."""
    given = {"decision": "confirm", "required": True, "deny_effect": "continue", "reason": "why"}

    assert decide(SHOUT, {}, policy(shout=given)) == PolicyRule.model_validate(given)


MCP = replace(SHOUT, origin="mcp")


def test_the_tools_of_a_server_are_confirmed_unless_they_only_look() -> None:
    """Nobody here has read what they do; a rule of the user's goes over that."""
    assert decide(MCP, {}, Tools()).decision == "confirm"
    assert decide(MCP, {}, Tools()).reason
    assert decide(replace(MCP, effect="none"), {}, Tools()).decision == "allow"
    assert decide(MCP, {}, policy(shout="allow")).decision == "allow"


EDITOR = BUILTIN["str_replace_editor"]

COMMANDS = {"run_command": "confirm", "run_command(git *)": "allow", "run_command(rm *)": "deny"}


@pytest.mark.parametrize(
    ("args", "decision"),
    [
        ({"command": "git log"}, "allow"),
        ({"command": "git log; ls"}, "confirm"),
        ({"command": "git log && r''m x"}, "deny"),
        ({"command": "git log $X"}, "confirm"),
        ({"command": "$X y"}, "deny"),
        ({"command": "git log <<X"}, "deny"),
        ({"command": "git log 'open"}, "deny"),
        ({"command": "ls"}, "confirm"),
        ({"command": ["git", "log"]}, "deny"),
        ({}, "deny"),
    ],
)
def test_commands_are_allowed_whole_and_denied_in_part(args: Any, decision: str) -> None:
    """In doubt whether a rule fits, it holds if it denies, and does not if it allows."""
    assert decide(COMMAND, args, policy(**COMMANDS)).decision == decision


@pytest.mark.parametrize(
    ("key", "line", "held"),
    [
        ("run_command(command=git push*)", "git push x", True),
        ("run_command(command=git push*)", "ls; 'git' push x", True),
        ("run_*(command=git push*)", "cat <<X", True),
        ("run_*(command=git push*)", "git status", False),
    ],
)
def test_a_pattern_for_a_whole_command_sees_through_quotes_too(
    key: str, line: str, held: bool
) -> None:
    """However the user wrote the rule, and an allowing one takes no shell operator."""
    assert (decide(COMMAND, {"command": line}, policy(**{key: "deny"})).decision == "deny") is held
    assert decide(
        COMMAND, {"command": "a; b"}, policy(**{"run_*(command=*)": "allow"})
    ).decision == ("confirm")


LINES = st.text("git psuh;&|$(){}<>`'\"\\\n", max_size=20)
VALUES = st.none() | st.booleans() | st.floats() | LINES | st.text(max_size=5)
ARGS = st.dictionaries(
    st.sampled_from(["command", "path", "text", "cwd"]),
    VALUES
    | st.lists(VALUES, max_size=2)
    | st.dictionaries(st.text(max_size=2), VALUES, max_size=2),
    max_size=3,
)
KEYS = st.sampled_from([
    "*", "run_command", "run_command(*)", "run_command(git *)", "run_command(git push *)", "run_*",
    "run_command(cwd=a/**)", "str_*(path=src/**)", "*(path=*.py)", "*(command=*)", "shout(text=*)",
])  # fmt: skip
POLICIES = st.dictionaries(KEYS, st.sampled_from(["allow", "confirm", "deny"]), max_size=4)
TOOLS = st.sampled_from([*BUILTIN.values(), SHOUT, MCP])


@given(TOOLS, ARGS, POLICIES, KEYS)
def test_a_rule_that_denies_never_lets_more_run(
    tool: Any, args: dict[str, Any], rules: dict[str, str], key: str
) -> None:
    """Nor do any arguments, of whatever type, make the policy fail."""
    before = decide(tool, args, policy(**rules)).decision
    after = decide(tool, args, policy(**rules | {key: "deny"})).decision

    assert after in {before, "deny"} or rules.get(key) == before


@given(st.text("git push -ab'\";&|$(){}<>`\\\n*?[]~#!=", max_size=40))
def test_no_line_with_an_operator_is_allowed_by_its_beginning(line: str) -> None:
    """What a rule allows is one simple command: nothing in it means anything to a shell."""
    rules = policy(**{"run_command(git *)": "allow", "run_command(*)": "allow"})

    if decide(COMMAND, {"command": line}, rules).decision == "allow":
        unquoted = re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", line)
        assert not set(unquoted) & set(";&|$(){}<>`\\\n*?[]#!'\"")


@pytest.mark.parametrize(
    "args", [{"path": [[[["x"]]] * 3]}, {"path": 10**5000}, {"path": "a/" * 5000}]
)
def test_what_can_not_be_looked_at_is_taken_for_the_worse(args: dict[str, Any]) -> None:
    """A denial holds, a permission does not."""
    for _ in range(30):
        args = {"path": [args["path"]]} if isinstance(args["path"], list) else args

    assert decide(EDITOR, args, policy(**{"*(path=x/**)": "deny"})).decision == "deny"
    rules = policy(**{"*(path=**)": "allow", "*": "confirm"})
    assert decide(EDITOR, args, rules).decision == "confirm"
