"""Open questions as a person sees them: exactly what will be, with nothing hidden."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.parts import a_phase

from daruma.graph.command_line._moment_lines import lines_of
from daruma.graph.command_line._output import Line, Paper, cut
from daruma.graph.command_line._questions import (
    approval_lines,
    diff_lines,
    edit_preview,
    plan_lines,
    recovery_lines,
)
from daruma.state.events import (
    Event,
    PhaseRollbackCompleted,
    PhaseRollbackFailed,
    PhaseRollbackStarted,
    RollbackDecided,
    SavepointWritten,
    WorkspaceDrifted,
)
from daruma.state.failure import RecoveryAction

# --- An approval on the terminal: everything, in the open, and nothing that imitates us.


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


@pytest.mark.long
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


# --- The diff of an edit that waits for a yes, made of the file as it is now.


def asked(folder: Path, tool: str = "str_replace_editor", **args: Any) -> dict[str, Any]:
    ids = {"approval_id": "c1", "digest": "d" * 64, "tool": tool, "args": args}
    other = {"reason": "", "required": False, "deny_effect": "block", "sandbox": "none"}
    return {**ids, **other, "cwd": str(folder)}


def replacing(folder: Path, old: str, new: str) -> dict[str, Any]:
    return asked(folder, command="str_replace", path="a.py", old_str=old, new_str=new)


def signs(lines: list[Line]) -> list[str]:
    return [f"{line.mark} {line.text}" for line in lines]


def test_a_new_file_and_an_insertion_are_diffs(tmp_path: Path) -> None:
    """All of a new file is new."""
    (tmp_path / "a.py").write_text("one\n")
    new = asked(tmp_path, command="create", path="b.py", file_text="x\ny\n")
    more = asked(tmp_path, command="insert_at_line", path="a.py", insert_line=1, insert_text="two")

    assert {"plus x", "plus y"} <= {*signs(edit_preview(new))}
    assert "plus two" in signs(edit_preview(more))


def test_what_hides_in_a_diff_is_spelled(tmp_path: Path) -> None:
    """Bidirectional marks and escape sequences, in what goes and in what comes."""
    (tmp_path / "a.py").write_text("a \x1b[2J\nb\n")

    text = "\n".join(signs(edit_preview(replacing(tmp_path, "b", "c\u202e"))))

    assert r"\x1b[2J" in text
    assert r"plus c\u202e" in text


def test_windows_line_ends_are_no_change(tmp_path: Path) -> None:
    """A file keeps its own; lines that stay the same show them, spelled."""
    (tmp_path / "a.py").write_bytes(b"one\r\ntwo\r\n")

    lines = signs(edit_preview(replacing(tmp_path, "two", "2")))

    assert [line for line in lines if line.startswith(("plus", "minus"))] == [
        r"minus two\x0d",
        r"plus 2\x0d",
    ]


def test_an_edit_that_would_be_refused_says_so(tmp_path: Path) -> None:
    """As the file is now; a file that is not there, and a path that leads out."""
    (tmp_path / "a.py").write_text("one\n")
    out = asked(tmp_path, command="str_replace", path="../a", old_str="a", new_str="b")

    for refused in (replacing(tmp_path, "two", "2"), replacing(tmp_path / "no", "a", "b"), out):
        (line,) = edit_preview(refused)
        assert (line.mark, line.text[:39]) == (
            "bad",
            "as the file is now, this would be refused"[:39],
        )


def test_other_calls_have_no_diff(tmp_path: Path) -> None:
    """Nor have those whose arguments make no edit, or whose folder is not known."""
    unknown = replacing(tmp_path, "a", "b") | {"cwd": None}
    odd = asked(tmp_path, command="str_replace", path=3, old_str="a", new_str="b")
    view = asked(tmp_path, command="view", path="a.py")

    for call in (asked(tmp_path, "pay", amount=3), unknown, odd, view, asked(tmp_path)):
        assert edit_preview(call) == []


def test_no_difference_is_said() -> None:
    """Rather than shown as nothing."""
    assert signs([*diff_lines("a\n", "a\n")]) == ["note this changes nothing"]


# --- Who agrees to a recovery has seen all of it, and nothing that only looks like it.


def request(**changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"strategy": "retry", "confidence": 0.6} | changes
    return {"failure": "it fell over", "action": RecoveryAction(**given).to_dict()}


def test_all_of_a_recovery_is_shown() -> None:
    """RE-06: failure, strategy, tool, parameters, reasons and confidence."""
    lines = recovery_lines(
        request(
            strategy="alternative-tool",
            tool_name="brave_search",
            parameters={"query": "a\nb", "count": 5},
            reasoning="The other is down.",
            expected_outcome="Results.",
            escalation_message="May I?",
        )
    )

    assert lines == [
        Line("given", "it failed: it fell over"),
        Line("line", "alternative-tool", "brave_search"),
        Line("given", "query: 2 lines"),
        Line("payload", "a"),
        Line("payload", "b"),
        Line("given", "count: 5"),
        Line("given", "why: The other is down."),
        Line("given", "expected: Results."),
        Line("given", "to say: May I?"),
        Line("note", "confidence 0.60, chosen by model"),
    ]


# --- A plan under review shows everything that will be done.


def test_a_phase_shows_who_does_it_after_what_and_how_it_is_undone() -> None:
    """PL-02: a person confirms it all, commands included."""
    phase = a_phase(
        "p2", "p1", title="Build", expert="developer", rollback="snapshot",
        rollback_command="make clean", validation_command="make check", settles="p1",
        conflicts=("a.py", "b.py"),
    )  # fmt: skip

    assert plan_lines([phase.to_dict()]) == [
        Line("line", "1. Build"),
        Line("note", "after: p1"),
        Line("note", "by: developer"),
        Line("note", "checked with: make check"),
        Line("note", "undone with: make clean"),
        Line("note", "if it fails: all files are put back"),
        Line("note", "settles the conflicts of: p1"),
        Line("note", "in conflict: a.py, b.py"),
    ]


# --- What happens to the files of a workspace is told plainly, with what brings them back.

DRIFT = "5 files have changed since this thread last looked, and not by its work"
KEPT = Line("note", "what was rolled back is kept: daruma undo THREAD --to 7f", whole=True)


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            WorkspaceDrifted(paths=("a.py", "b\n.py"), total=5),
            [
                Line("bad", DRIFT),
                Line("note", "a.py"),
                Line("note", "b .py"),
                Line("note", "and 3 more"),
            ],
        ),
        (SavepointWritten(savepoint_id="2", snapshot="7f"), []),
        (
            SavepointWritten(savepoint_id="2", snapshot=None, note="the disk is full"),
            [Line("note", "savepoint 2", "the disk is full")],
        ),
        (
            PhaseRollbackStarted(phase_id="p1", command="snapshot"),
            [Line("head", "Rollback", "p1: all files as before the phase")],
        ),
        (
            PhaseRollbackStarted(phase_id="p1", command="git checkout ."),
            [Line("head", "Rollback", "p1: git checkout .")],
        ),
        (
            PhaseRollbackCompleted(phase_id="p1", exact=True, undo="7f"),
            [Line("ok", "rolled back: the files are exactly as before the phase"), KEPT],
        ),
        (
            PhaseRollbackCompleted(phase_id="p1", exact=False, left=("a.py: in use",)),
            [
                Line("bad", "rolled back, but not all files are as before the phase"),
                Line("note", "a.py: in use"),
            ],
        ),
        (PhaseRollbackCompleted(phase_id="p1"), [Line("ok", "rolled back")]),
        (
            PhaseRollbackFailed(phase_id="p1", reason="exit 1", undo="7f"),
            [Line("bad", "not rolled back: exit 1"), KEPT],
        ),
        (
            RollbackDecided(phase_id="p1", decision="keep"),
            [Line("ok", "keep: the files stay as they are")],
        ),
    ],
)  # fmt: skip
def test_each_thing_has_its_lines(event: Event, lines: list[Line]) -> None:
    """RO-05, RO-07: what a person has to know of it, and no more."""
    assert lines_of(event.to_dict()) == lines


def test_of_many_files_the_number_is_told() -> None:
    """A screen is not filled with names."""
    left = tuple(f"{number}.py" for number in range(90))

    lines = lines_of(PhaseRollbackCompleted(phase_id="p", exact=False, left=left).to_dict())

    assert len(lines) == 22
    assert lines[-1] == Line("note", "and 70 more")


def test_what_is_left_out_is_counted() -> None:
    """The lines that are shown and those that are counted are all there are."""
    lines = [Line("payload", str(number)) for number in range(500)]

    shown = cut(lines, 100)

    assert [shown[0], shown[-1]] == [lines[0], lines[-1]]
    (said,) = [line.text for line in shown if line.mark == "alarm"]
    assert said.startswith("400 lines are left out here")
    assert len(shown) == 101
