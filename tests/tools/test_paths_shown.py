"""The whole path of which a call gave the tail is found in what tools have shown."""

import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from tests.parts import a_call

from daruma.state.calls import ToolTask
from daruma.tools.calls.path_advice import MOST, MOST_SHOWN, paths_of

SEARCH = "src/pkg/a.py:12: import a\nlib/a.py:3: x\ndocs/my notes/a.md:1: y"
TREE = "src/\nsrc/pkg/\nsrc/pkg/b.py\nlink@"
TRACE = '  File "/ws/src/pkg/c.py", line 3\nFAILED tests/test_d.py::test_it - see src/e.py.'
DIFF = "diff --git a/src/pkg/f.py b/src/pkg/f.py"


def result(text: str, **given: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id="c", **given)


def edit(path: object, name: str = "str_replace_editor") -> ToolTask:
    return a_call(name=name, args={"command": "view", "path": path})


MESSAGES: list[AnyMessage] = [
    HumanMessage("said/by/people.py"),
    result(SEARCH),
    AIMessage("said/by/model.py"),
    result(TREE),
    result(TRACE),
    result(DIFF),
    result("failed/g.py: no such file", status="error"),
]


@pytest.mark.parametrize(
    ("path", "paths"),
    [
        ("a.py", {"src/pkg/a.py", "lib/a.py"}),
        ("pkg/a.py", {"src/pkg/a.py"}),
        ("./pkg/a.py", {"src/pkg/a.py"}),
        ("pkg\\a.py", {"src/pkg/a.py"}),
        ("src\\pkg\\a.py", {"src/pkg/a.py"}),
        ("workspace/src/pkg/a.py", {"src/pkg/a.py"}),
        ("workspace/pkg/a.py", {"src/pkg/a.py"}),
        ("b.py", {"src/pkg/b.py"}),
        ("pkg", {"src/pkg", "/ws/src/pkg"}),
        ("c.py", {"/ws/src/pkg/c.py"}),
        ("test_d.py", {"tests/test_d.py", "FAILED tests/test_d.py"}),
        ("e.py", {"src/e.py"}),
        ("f.py", {"src/pkg/f.py"}),
        ("a.md", {"docs/my notes/a.md", "notes/a.md"}),
        ("src/pkg/a.py", set()),
        (".py", set()),
        ("kg/a.py", set()),
        ("a.p", set()),
        ("g.py", set()),
        ("people.py", set()),
        ("model.py", set()),
        ("../a.py", set()),
        ("", set()),
        (".", set()),
        ("/", set()),
        ("x" * 301, set()),
        (3, set()),
    ],
)
def test_whole_components_from_the_end_are_a_tail(path: object, paths: set[str]) -> None:
    """CX-06: in the forms that models give; only what a tool has shown counts."""
    found = set(paths_of(edit(path), MESSAGES))

    assert paths <= found
    assert all(" " in each or each.startswith(("a/", "b/")) for each in found - paths)


def test_only_the_editor_is_advised() -> None:
    """Other tools' arguments may be no paths at all."""
    assert paths_of(edit("a.py", name="read_file"), MESSAGES) == ()


def test_what_was_shown_last_comes_first_and_no_more_than_some() -> None:
    """A call carries its candidates: they stay few."""
    many: list[AnyMessage] = [result(f"d{number}/a.py") for number in range(50)]

    found = paths_of(edit("a.py"), many)

    assert len(found) == MOST
    assert found[0] == "d49/a.py"


def test_a_long_thread_costs_no_more_than_a_short_one() -> None:
    """Only the newest million characters are looked through."""
    old: list[AnyMessage] = [result("old/a.py")]
    new: list[AnyMessage] = [result("x/y.py:1: word\n" * 2000) for _ in range(500)]

    began = time.process_time()
    found = paths_of(edit("a.py"), [*old, *new])

    assert found == ()
    assert time.process_time() - began < 0.5


def test_a_path_that_is_shown_all_the_time_is_not_looked_at_each_time() -> None:
    """Only the last mentions count: the rest of a long thread is about the same file."""
    often = [result("src/a.py:1: x\n" * MOST_SHOWN)]

    assert paths_of(edit("a.py"), [result("lib/a.py"), *often]) == ("src/a.py",)
    assert paths_of(edit("a.py"), [*often, result("lib/a.py")]) == ("lib/a.py", "src/a.py")
