"""The story of a thread tells what it took."""

import re
from contextlib import chdir
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.parts import a_savepoint, a_task

from daruma.graph.command_line._output import Line, Paper
from daruma.graph.command_line._thread_view import (
    Stop,
    ThreadView,
    print_questions,
    print_story,
    print_summary,
    timeline_lines,
    when_lines,
    write_page,
)
from daruma.graph.timeline import Moment, Timeline
from daruma.state.result import TaskResult
from daruma.state.serializer import Asked
from daruma.state.verification import Check, Verification


def test_a_story_tells_where_can_be_gone_back_to() -> None:
    """RO-07: each savepoint once, as it was taken last; the newest task's undo at the end."""
    kept = (a_savepoint("1", at=1.0), a_savepoint("1", at=3.0), a_savepoint("1/p1", at=2.0))
    result = TaskResult(
        task_id="t/1", status="failed", output="It fell.", budgets={}, usage={}, timings={}
    )
    view = ThreadView(
        "t",
        datetime.fromtimestamp(0, UTC),
        task=a_task(),
        stop=Stop("t", result, (), kept),
        titles={("t/1", None): "Mend it"},
    )
    file = StringIO()

    print_story(Paper(Console(file=file, width=200)), view)

    assert file.getvalue().count("before Mend it") == 1
    assert "daruma undo t --to ID" in file.getvalue()
    assert "undo     daruma undo t\n" in file.getvalue()
    assert [each["id"] for each in view.to_dict()["savepoints"]] == ["1/p1", "1"]


@pytest.mark.parametrize("terminal", [True, False])
def test_no_line_of_an_answer_passes_for_one_of_ours(*, terminal: bool) -> None:
    """TL-13: nor of what checks said; the commands to be pasted are on a line, however narrow."""
    name = "a thread with a name that is wider than the terminal"
    check = Check(command="true", passed=False, exit_code=1, output="undo     evil2")
    output = f"Done.\n\nchecks   ✓ evil0\r\nundo     evil1 {'x' * 22} undo     evil3"
    result = TaskResult(
        task_id="t/1", status="failed", output=output, budgets={}, usage={}, timings={},
        verification=Verification(checks=(check,)),
    )  # fmt: skip
    file = StringIO()
    console = Console(file=file, width=40, force_terminal=terminal, no_color=True, highlight=False)
    question = {"type": "approval_request", "id": "a", "deadline": None, "approvals": [
        {"approval_id": "call_0123456789012345678901234567", "digest": "d" * 64, "tool": "shout",
         "args": {}, "reason": "", "required": True, "deny_effect": "block", "sandbox": "none"}
    ]}  # fmt: skip
    kept = (a_savepoint("1", at=1.0),)

    print_summary(Paper(console), name, result, kept)
    print_questions(Paper(console), Stop(name, result, (Asked(question, "i"),)), known=False)

    lines = re.sub(r"\x1b\[[\d;]*m", "", file.getvalue()).splitlines()
    assert [line for line in lines if re.match(r"\S.*evil", line)] == []
    assert f"undo     daruma undo '{name}'" in lines
    way = "--approve call_0123456789012345678901234567@dddddddddddd"
    assert f"    daruma answer '{name}' {way}" in lines


# --- A timeline on a terminal: times, durations, cost, setbacks in their place.

START = 1_700_000_000.0


def moment(kind: Any, title: str, after: float = 0.0, **more: Any) -> Moment:
    return Moment(kind=kind, title=title, at=START + after, timed=True, **more)


def a_timeline(*moments: Moment, **more: Any) -> Timeline:
    values = {"started_at": START, "updated_at": START + 75, "moments": moments, **more}
    return Timeline(thread="t", status="completed", **values)


def told(*moments: Moment, tail: int | None = None) -> list[Line]:
    return [*timeline_lines(a_timeline(*moments), tail)][1:]


def test_a_moment_has_its_time_and_its_cost() -> None:
    """The clock's, that since the beginning, the seconds, the tokens and the money."""
    (line,) = told(moment("tool", "$ pytest", 65, ok=True, seconds=2.34, tokens=1200, usd=0.01))

    assert line.mark == "ok"
    assert line.text.endswith(" +1:05  $ pytest")
    assert len(line.text.split()[0].split(":")) == 3
    assert line.tail == "2.3 s · 1,200 tokens · $0.0100"


def test_what_failed_says_why() -> None:
    """The end of its output, and how much stands before it."""
    output = "\n".join(f"line {number}" for number in range(10))

    first, *rest = told(moment("check", "$ pytest", ok=False, output=output, note="exit 1"))

    assert (first.mark, first.tail) == ("bad", "exit 1")
    assert rest[0].text == "… 6 lines before: `daruma show --json` holds them"
    assert rest[-1].text == "line 9"


def test_an_answer_stands_behind_its_question() -> None:
    """RO-03: in quotes, on one line."""
    (line,) = told(moment("question", "What now?", output="keep\nthem", seconds=4.2))

    assert line.text.endswith('  What now? "keep them"')
    assert line.tail == "4.2 s"


def test_a_change_is_a_diff_and_a_long_one_is_counted() -> None:
    """Headers are left out, lines are not without a word."""
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n" + "".join(f"+{n}\n" for n in range(20))

    _, *rest = told(moment("tool", "str_replace a.py", ok=True, diff=diff))

    assert [rest[0], rest[1]] == [Line("minus", "old"), Line("plus", "new")]
    assert rest[-1].text == "… 10 more lines of this change: `daruma show --json` holds them"


def test_words_are_shown_as_words() -> None:
    """Of a member, with whose they are; an answer that was none is no words."""
    said, failed = told(
        moment("model", "I look.", detail="I look.\nClosely.", member="p1", ok=True),
        moment("model", "no usable answer", ok=False),
    )

    assert said.mark == "words"
    assert said.text.endswith("p1: I look.\nClosely.")
    assert failed.mark == "bad"


AGO = [(5, "just now"), (120, "2 min ago"), (7200, "2 h ago"), (86400, "1 d ago")]


@pytest.mark.parametrize(("seconds", "said"), AGO)
def test_the_beginning_is_told_by_the_clock_and_by_now(seconds: float, said: str) -> None:
    """With how long it took and what it cost."""
    (line,) = when_lines(a_timeline(tokens=1200, usd=0.5), START + seconds)

    assert f", {said}; took 1 min 15 s · 1,200 tokens · $0.5000" in line.text


def test_a_thread_without_times_says_nothing_of_them() -> None:
    """Old checkpoints may lack them."""
    assert [*when_lines(Timeline(thread="t", status="unfinished"))] == []


# --- ``daruma show THREAD --html``: the page of a thread as a file.


def test_a_long_name_of_a_thread_still_names_a_file(tmp_path: Path) -> None:
    """What a file system does not take is cut, between two characters."""
    with chdir(tmp_path):
        write_page("é" * 400, None, "page")

    (file,) = tmp_path.iterdir()
    assert file.name == f"{'é' * 100}.html"
