"""The policy says whether a call runs, waits for a person, or does not run."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts import WORKSPACE_TOOLS, a_registry, settings

from daruma.state.settings import PolicyRule, SettingsError, Tools
from daruma.tools.calls import Tool
from daruma.tools.calls._tool import Effect
from daruma.tools.calls.policy import check_profile, check_profile_name, profile_shows
from daruma.tools.calls.policy._policy import NONE, UNTOLD, argument, decide, may_fit, surely_fits

BUILTIN = {tool.name: tool for tool in WORKSPACE_TOOLS}
COMMAND = BUILTIN["run_command"]


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


(SHOUT,) = a_registry([shout]).visible(Tools(), ())


def policy(**rules: Any) -> Tools:
    return settings(tools={"policy": rules}).tools


SAFE = (
    *("pytest", "pytest -x -q", "python3 -m pytest", "  ruff check src  ", "ruff format --check ."),
    *("python -m pytest -vv tests/test_a.py::test_b", "git status", "git diff"),
    "git log --oneline",
)
ASKED_ABOUT = (
    *("ls", "pytest; rm -rf .", "pytest\nrm -rf .", "pytest && rm x", "pytest | sh", "xpytest", ""),
    *("pytest > conftest.py", "pytest $(rm x)", "pytest `rm x`", "pytest ../elsewhere"),
    *("pytest tests/../../elsewhere", "pytest /etc", "pytest ~/x", "pytest -p evil"),
    *("pytest --rootdir=/", "ruff check --fix", "ruff format .", "git push", "git diff --output=x"),
    "git log --oneline --output=x",
)


def test_known_safe_commands_run_at_once_and_all_others_are_confirmed() -> None:
    """They only look, or run what verification runs anyway; nothing is hung on to a whole line.

    What can not be read is not taken for harmless; elsewhere the same words may run other things.
    """
    odd: Any = ({}, {"command": ["pytest"]}, {"command": None}, {"command": "pytest", "cwd": "sub"})
    asked: list[Any] = [*({"command": line} for line in ASKED_ABOUT), *odd]
    for line in SAFE:
        assert decide(COMMAND, {"command": line}, Tools()).decision == "allow"
    for args in asked:
        rule = decide(COMMAND, args, Tools())

        assert (rule.decision, rule.required) == ("confirm", False)
        assert rule.reason


ALLOWED: dict[str, Any] = {"run_command": "allow", "run_tests": "allow"}
UNCONFINED = {
    "a command": (COMMAND, {"command": "make"}, {}, "confirm", True),
    "a safe one": (COMMAND, {"command": "pytest"}, {}, "confirm", True),
    "one that is allowed": (COMMAND, {"command": "pytest"}, ALLOWED, "confirm", True),
    "tests": (BUILTIN["run_tests"], {}, {}, "confirm", True),
    "tests that are allowed": (BUILTIN["run_tests"], {}, ALLOWED, "confirm", True),
    "one that is denied": (COMMAND, {"command": "make"}, {"run_*": "deny"}, "deny", False),
    "no command": (BUILTIN["search"], {"pattern": "x"}, {}, "allow", False),
    "an application's tool": (SHOUT, {"text": "x"}, {}, "allow", False),
}


def test_without_a_sandbox_every_command_is_asked_about() -> None:
    """SE-04: tests too, whatever is allowed, and only a person can say yes; a no stays one."""
    for tool, args, rules, decision, required in UNCONFINED.values():
        rule = decide(tool, args, policy(**rules), unconfined=True)

        assert (rule.decision, rule.required) == (decision, required)
        assert rule.decision != "confirm" or rule.deny_effect == "continue"


def test_what_is_no_command_is_allowed() -> None:
    """Looking and editing in the workspace, and the tools that the application passed in."""
    tool: Any
    for tool in [*BUILTIN.values(), SHOUT]:
        if tool is not COMMAND:
            assert decide(tool, {"command": "rm -rf ."}, Tools()).decision == "allow"


def test_the_order_of_rules() -> None:
    """Deny, then arguments before none, an exact name before a pattern, then the first given."""
    rules: Any
    for rules, decision in [
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
    ]:
        assert decide(SHOUT, {"text": "hey"}, policy(**rules)).decision == decision


def test_a_rule_keeps_all_it_says() -> None:
    """TL-13: whether it is required, what a denial does, and why.

    The user's goes over the built-in one: a safe command can be denied, any other one allowed.
    """
    given = {"decision": "confirm", "required": True, "deny_effect": "continue", "reason": "why"}

    assert decide(SHOUT, {}, policy(shout=given)) == PolicyRule.model_validate(given)
    for line, decision in (("pytest", "deny"), ("rm x", "allow")):
        rules = policy(run_command=decision)
        assert decide(COMMAND, {"command": line}, rules).decision == decision


MCP = replace(SHOUT, origin="mcp")


def test_the_tools_of_a_server_are_confirmed_unless_they_only_look() -> None:
    """Nobody here has read what they do; a rule of the user's goes over that."""
    assert decide(MCP, {}, Tools()).decision == "confirm"
    assert decide(MCP, {}, Tools()).reason
    assert decide(replace(MCP, effect="none"), {}, Tools()).decision == "allow"
    assert decide(MCP, {}, policy(shout="allow")).decision == "allow"


EDITOR = BUILTIN["str_replace_editor"]

COMMANDS = {"run_command": "confirm", "run_command(git *)": "allow", "run_command(rm *)": "deny"}


def test_commands_are_allowed_whole_and_denied_in_part() -> None:
    """In doubt whether a rule fits, it holds if it denies, and does not if it allows."""
    args: Any
    for args, decision in [
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
    ]:
        assert decide(COMMAND, args, policy(**COMMANDS)).decision == decision


def test_a_pattern_for_a_whole_command_sees_through_quotes_too() -> None:
    """However the user wrote the rule, and an allowing one takes no shell operator."""
    for key, line, held in [
        ("run_command(command=git push*)", "git push x", True),
        ("run_command(command=git push*)", "ls; 'git' push x", True),
        ("run_*(command=git push*)", "cat <<X", True),
        ("run_*(command=git push*)", "git status", False),
    ]:
        assert (
            decide(COMMAND, {"command": line}, policy(**{key: "deny"})).decision == "deny"
        ) is held
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


def test_what_can_not_be_looked_at_is_taken_for_the_worse() -> None:
    """A denial holds, a permission does not."""
    args: Any
    for args in [{"path": [[[["x"]]] * 3]}, {"path": 10**5000}, {"path": "a/" * 5000}]:
        deep = args
        for _ in range(30):
            deep = {"path": [deep["path"]]} if isinstance(deep["path"], list) else deep

        assert decide(EDITOR, deep, policy(**{"*(path=x/**)": "deny"})).decision == "deny"
        rules = policy(**{"*(path=**)": "allow", "*": "confirm"})
        assert decide(EDITOR, deep, rules).decision == "confirm"


# --- Which arguments fit a pattern for sure, and which may.


def test_what_may_be_meant_may_fit() -> None:
    """As text or as a path; one that is absolute or leads out may lead back in.

    A denial of one folder does not forbid the others.
    """
    value: Any
    for glob, value in [
        ("secrets/**", "secrets/a"),
        ("secrets/**", "./secrets//a/b"),
        ("secrets/**", "src/../secrets/a"),
        ("secrets/**", "SECRETS/a"),
        ("secrets/**", "secrets"),
        ("./secrets//**", "secrets/a"),
        ("secrets/**", "/home/me/project/secrets/a"),
        ("secrets/**", "../project/secrets/a"),
        ("secrets/**", "~/project/secrets/a"),
        ("secrets/**", ["src/a", "secrets/a"]),
        ("secrets/**", {"secrets/a": 1}),
        ("*.env", "deep/down/.env"),
        (".env", "deep/.env"),
        ("src/*.py", "src/a.py"),
        ("src/*.py", "src/deep/a.py"),
        ("secrets/**", "secrets/../src/a"),
        ("*", 5),
        ("1*", 100),
        ("true", True),
        ("null", None),
        ("[[]]", []),
        ("caf\u00e9", "CAFE\u0301"),
    ]:
        assert may_fit(value, glob)
    for glob, value in [
        ("secrets/**", "src/a"),
        ("secrets/**", "src/secrets/a"),
        ("secrets/**", "secretsX"),
        ("1*", 2),
        ("x", []),
    ]:
        assert not may_fit(value, glob)


def test_only_what_stays_inside_fits_surely() -> None:
    """All that a list holds must fit, a path without leaving the folder."""
    value: Any
    for name, glob, value, fits in [
        ("path", "src/**", "src/a.py", True),
        ("path", "src/**", "./src//b/../a.py", True),
        ("path", "src/**", "src/../secrets/a", False),
        ("path", "src/**", "src", False),
        ("path", "src/**", "../src/a", False),
        ("path", "src/**", "/src/a", False),
        ("path", "**", "../x", False),
        ("path", "*", "/etc/passwd", False),
        ("path", "*.md", "a/../../x.md", False),
        ("path", "~/**", "~/x", False),
        ("path", "*.md", "docs/x.md", True),
        ("path", "/data/**", "/data/x", True),
        ("path", "/data/**", "/data/../etc/x", False),
        ("path", "/data/**", "data/x", False),
        ("paths", "tmp/**", ["tmp/a", "tmp/b"], True),
        ("paths", "tmp/**", ["tmp/a", "src/b"], False),
        ("paths", "SRC/**", "src/a", False),
        ("amount", "1?", 10, True),
        ("amount", "1?", 1000, False),
        ("text", "a*", "a/../b", True),
    ]:
        assert surely_fits(name, value, glob) is fits


def test_an_argument_that_was_left_out_has_its_default() -> None:
    """A rule speaks of what the tool will get."""
    args: Any
    expected: Any
    for args, expected in [({"a": 1}, 1), ({}, "x")]:
        schema = {"properties": {"a": {"default": "x"}, "b": {}, "c": {}}, "required": ["c"]}

        assert argument(args, schema, "a") == expected
        assert argument(args, schema, "b") is UNTOLD
        assert argument(args, schema, "c") is NONE
        assert argument(args, schema, "d") is NONE


@given(st.text("ab/.~*", max_size=12))
def test_what_surely_fits_may_fit(path: str) -> None:
    """The two answers never cross: a denial holds wherever a permission would."""
    for glob in ("a/**", "**", "*", "a/*", "/a/**", "b*"):
        if surely_fits("path", path, glob):
            assert may_fit(path, glob)
            assert ".." not in path.split("/")[:1]


# --- A profile decides which tools the model is shown.


async def nothing(*_: Any) -> str:
    return ""


EFFECTS: dict[str, Effect] = {
    "search": "none",
    "search_knowledge": "none",
    "hybrid_search": "external",
    "web_search": "external",
    "get_knowledge_graph_context": "none",
    "web_search_all": "none",
    "pay": "external",
    "run_command": "workspace",
}
TOOLS_PROFILES = [Tool(name, "", {}, nothing, effect=effect) for name, effect in EFFECTS.items()]


def shown(**given: Any) -> list[str]:
    return [tool.name for tool in TOOLS_PROFILES if profile_shows(Tools(**given), tool)]


def test_a_profile_shows_what_it_lists() -> None:
    """TL-06: names or patterns; AS-02: the librarian has four; one's own goes before a built-in."""
    looks = [name for name, effect in EFFECTS.items() if effect == "none"]
    four = ["search_knowledge", "hybrid_search", "web_search", "get_knowledge_graph_context"]
    own: Any
    for profile, own, expected in [
        (None, {}, list(EFFECTS)),
        ("all", {}, list(EFFECTS)),
        ("read_only", {}, looks),
        ("librarian_retrieval", {}, four),
        ("mine", {"mine": ("pay",)}, ["pay"]),
        ("mine", {"mine": ("web_*", "pa?")}, ["web_search", "web_search_all", "pay"]),
        ("mine", {"mine": ("PAY",)}, []),
        ("mine", {"mine": ()}, []),
        ("read_only", {"read_only": ("pay",)}, ["pay"]),
    ]:
        assert shown(profile=profile, profiles=own) == expected


def test_a_profile_that_is_not_there_is_an_error() -> None:
    """It names the nearest and all there are; nothing is shown by accident.

    One can be asked for by its name, an expert's for one: that error says of no setting.
    """
    for name, near in (("readonly", "read_only"), ("mien", "mine")):
        settings = Tools(profile=name, profiles={"mine": ()})
        said = f"did you mean '{near}'.*There are: all, read_only, librarian_retrieval, mine$"

        with pytest.raises(SettingsError, match=said):
            check_profile(settings)
        with pytest.raises(SettingsError):
            profile_shows(settings, TOOLS_PROFILES[0])
        with pytest.raises(
            SettingsError, match=rf"^there is no profile '{name}'; did you mean '{near}'"
        ):
            check_profile_name(name, settings)
    for known in ("mine", "read_only", None):
        check_profile_name(known, Tools(profiles={"mine": ()}))


# --- A rule of the policy that can not be about any call is an error, not a silence.


def pay(amount: int) -> str:
    """Pay."""
    return str(amount)


def test_a_rule_about_nothing_is_refused() -> None:
    """A prohibition that is misspelt would hold for nothing, and nobody would know."""
    for key, said in [
        ("Pay", "there is no tool 'Pay'; did you mean 'pay'?"),
        ("runCommand", "did you mean 'run_command'?"),
        ("str_replace_edtor", "did you mean 'str_replace_editor'?"),
        ("str_replace_edtor(path=secrets/**)", "did you mean 'str_replace_editor'?"),
        ("str_replace_editor(file=secrets/**)", "'str_replace_editor' has no argument 'file'"),
        ("payy", "did you mean 'pay'?"),
        ("pays(to=Bob)", "did you mean 'pay'?"),
        ("pey", "did you mean 'pay'?"),
        ("paay", "did you mean 'pay'?"),
        ("pya", "did you mean 'pay'?"),
        ("pa", "did you mean 'pay'?"),
        ("pay(amont=1*)", "'pay' has no argument 'amont'; it has: amount"),
    ]:
        with pytest.raises(SettingsError) as error:
            a_registry([pay]).check(Tools(policy={key: "deny"}))

        assert said in str(error.value)


def test_a_rule_may_be_about_tools_that_are_not_there() -> None:
    """Settings are shared by graphs with other tools."""
    own = ["pay", "pay(amount=1)", "pay_*", "Pay*"]
    for key in [*own, "refund", "mcp__notes__write", "pay2", "say", "paid", "payout"]:
        a_registry([pay]).check(Tools(policy={key: "deny"}))
    a_registry([pay]).check(Tools(policy={"pay": "confirm", "pays": "deny"}))
