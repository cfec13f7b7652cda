"""An approval on the terminal: everything, in the open, and nothing that imitates us."""

from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from daruma.graph.command_line.output import Paper
from daruma.graph.command_line.questions import approval_lines


def an_approval(**changes: Any) -> dict[str, Any]:
    """An approval of a command, as the question holds it."""
    command = {"args": {"command": "ls -l", "timeout": 5}, "command": "ls -l", "cwd": "/ws"}
    other = {"reason": "why", "required": True, "deny_effect": "block", "sandbox": "landlock"}
    ids = {"approval_id": "c1", "digest": "0123456789abcdef" * 4, "tool": "run_command"}
    return {**ids, **command, **other, **changes}


def a_call(**args: Any) -> dict[str, Any]:
    return an_approval(tool="pay", args=args, command=None)


def printed(approval: dict[str, Any], *, terminal: bool = False, width: int = 60) -> list[str]:
    file = StringIO()
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None)
    Paper(console).put(*approval_lines(approval))
    return file.getvalue().splitlines()


def test_an_approval_is_told_whole() -> None:
    """The command, its folder, the sandbox and what it leaves open, and how the call is named."""
    lines = printed(an_approval(not_covered=["the network", "reading outside"], warnings=["odd"]))

    assert lines == [
        "!! Look closely: odd",
        "    run_command",
        "  ▸ $ ls -l",
        "  ▸ timeout: 5",
        "  · in: /ws",
        "  · why it is asked: why",
        "  · sandbox: landlock",
        "  · not covered: the network",
        "  · not covered: reading outside",
        "  · approval: c1, required; a denial stops the task",
        "  · digest: 0123456789ab",
    ]


def test_warnings_come_first() -> None:
    """As the question has them, and what they are about is spelled out below."""
    hidden = an_approval(command="l\u200bs", args={"command": "l\u200bs"})
    said = ["command: invisible characters", "a: control characters"]

    lines = printed(hidden | {"warnings": said}, width=200)

    assert lines[:2] == [f"!! Look closely: {each}" for each in said]
    assert r"  ▸ $ l\u200bs" in lines


def test_every_line_of_a_command_stands_behind_a_mark() -> None:
    """Text that looks like one of our lines is seen to be the command's."""
    command = "ls\n  · sandbox: namespace\n!! all is well"

    lines = printed(an_approval(command=command, args={"command": command}))

    assert lines[1:5] == [
        "  ▸ $ 3 lines",
        "    │ ls",
        "    │   · sandbox: namespace",
        "    │ !! all is well",
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("text", "text"),
        ("5", '"5"'),
        (5, "5"),
        ("null", '"null"'),
        (None, "null"),
        ({"a": ["é\n"]}, r'{"a": ["é\n"]}'),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u00a0b", r"a\xa0b"),
        (r"\u202e", r"\\u202e"),
    ],
)
def test_a_value_is_shown_as_what_it_is(value: object, said: str) -> None:
    """Text that reads like a number or null is told from one."""
    assert f"  ▸ a: {said}" in printed(a_call(a=value))


def test_long_arguments_are_not_cut() -> None:
    """A person agrees to what was shown, so all of it is."""
    lines = printed(a_call(a="x" * 5000, b="\n".join(map(str, range(1000)))), terminal=True)

    assert sum(line.count("x") for line in lines if "Look closely" not in line) >= 5000
    assert [line for line in lines if line.strip() == "│ 999"]


TEXTS = st.text(
    st.sampled_from("a \n\t│▸·!-\x1b\r\u202e\u2028\x85\x0b\x1c") | st.characters(), max_size=80
)


@given(TEXTS, TEXTS, st.booleans())
def test_nothing_given_can_pass_for_ours(command: str, key: str, terminal: bool) -> None:
    """Of all lines, those with our marks are as many as we wrote, whatever the call holds."""
    approval = an_approval(command=command, args={"command": command, key: command})
    ours = [line.mark for line in approval_lines(approval)]

    lines = printed(approval, terminal=terminal, width=60)

    assert sum(line.startswith("  · ") for line in lines) == ours.count("note")
    assert sum(line.startswith("!! ") for line in lines) == ours.count("alarm")
    assert sum(line.startswith("  ▸ ") for line in lines) == ours.count("given")
    assert not any(char in line for line in lines for char in "\x1b\r\u202e\u2028\x85\x0b\x1c")
