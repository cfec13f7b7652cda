"""A missing file is said with the path that was meant, if it is there."""

import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from tests.parts import a_call

from daruma.state.calls import ToolTask
from daruma.tools.errors import FileMissing, FileUnavailable, ToolError
from daruma.tools.workspace_tools import MOST_PATHS, MOST_SHOWN, advise_paths, candidate_paths

MISSING = FileMissing("a.py: no such file or directory: list the directory to see what is there")


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    for at in ("src", "lib", *map(str, range(9))):
        (tmp_path / at).mkdir()
        (tmp_path / at / "a.py").touch()
    (tmp_path / "out").symlink_to("/etc")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (["src/a.py"], "a.py: no such file or directory; it was shown as src/a.py: use it whole"),
        (
            ["src/a.py", "gone/a.py", "lib/a.py"],
            (
                "a.py: no such file or directory; shown before were src/a.py, lib/a.py: "
                "use one of them whole"
            ),
        ),
        (["gone/a.py", "out/hostname", "/etc/hostname", "../a.py"], str(MISSING)),
        ([], str(MISSING)),
    ],
)
async def test_those_that_are_there_are_named(workspace: str, paths: list[str], said: str) -> None:
    """CX-06: one as the path, several as a choice."""
    assert await advise_paths(MISSING, paths, workspace) == said


async def test_at_most_five_are_named(workspace: str) -> None:
    """More would be no help."""
    said = await advise_paths(MISSING, [f"{n}/a.py" for n in range(9)], workspace)

    assert "0/a.py, 1/a.py, 2/a.py, 3/a.py, 4/a.py: use" in said


async def test_an_absolute_path_is_named_as_the_workspace_has_it(workspace: str) -> None:
    """Once, however often it was shown."""
    said = await advise_paths(MISSING, [f"{workspace}/src/a.py", "src/a.py"], workspace)

    assert "it was shown as src/a.py: use it whole" in said


@pytest.mark.parametrize("error", [ToolError("no"), FileUnavailable("a.py: is a directory")])
async def test_other_errors_are_left_as_they_are(workspace: str, error: ToolError) -> None:
    """Only a path that leads nowhere was perhaps cut."""
    assert await advise_paths(error, ["src/a.py"], workspace) == str(error)


async def test_without_a_workspace_there_is_nothing_to_look_in() -> None:
    """The error stands for itself."""
    assert await advise_paths(MISSING, ["src/a.py"], None) == str(MISSING)


# --- The whole path of which a call gave the tail is found in what tools have shown.

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


def test_whole_components_from_the_end_are_a_tail() -> None:
    """CX-06: in the forms that models give; only what a tool has shown counts."""
    path: Any
    paths: Any
    for path, paths in [
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
    ]:
        found = set(candidate_paths(edit(path), MESSAGES))

        assert paths <= found
        assert all(" " in each or each.startswith(("a/", "b/")) for each in found - paths)


def test_only_the_editor_is_advised() -> None:
    """Other tools' arguments may be no paths at all."""
    assert candidate_paths(edit("a.py", name="read_file"), MESSAGES) == ()


def test_what_was_shown_last_comes_first_and_no_more_than_some() -> None:
    """A call carries its candidates: they stay few."""
    many: list[AnyMessage] = [result(f"d{number}/a.py") for number in range(50)]

    found = candidate_paths(edit("a.py"), many)

    assert len(found) == MOST_PATHS
    assert found[0] == "d49/a.py"


def test_a_long_thread_costs_no_more_than_a_short_one() -> None:
    """Only the newest million characters are looked through."""
    old: list[AnyMessage] = [result("old/a.py")]
    new: list[AnyMessage] = [result("x/y.py:1: word\n" * 2000) for _ in range(500)]

    began = time.process_time()
    found = candidate_paths(edit("a.py"), [*old, *new])

    assert found == ()
    assert time.process_time() - began < 0.5


def test_a_path_that_is_shown_all_the_time_is_not_looked_at_each_time() -> None:
    """Only the last mentions count: the rest of a long thread is about the same file."""
    often = [result("src/a.py:1: x\n" * MOST_SHOWN)]

    assert candidate_paths(edit("a.py"), [result("lib/a.py"), *often]) == ("src/a.py",)
    assert candidate_paths(edit("a.py"), [*often, result("lib/a.py")]) == ("lib/a.py", "src/a.py")
