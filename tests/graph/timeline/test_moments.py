"""What happened in a run, a moment each: from messages and from the record of steps."""

from dataclasses import replace
from typing import Any

import pytest
from langgraph.types import Interrupt
from tests.parts import taken

from daruma.graph.timeline import (
    Superstep,
    call_moment,
    call_title,
    render_duration,
    render_duration_if_any,
)
from daruma.graph.timeline._moments import MOST_LINES, arguments_text, edit_diff, step_moment
from daruma.graph.timeline._record import question_moments, savepoint_moment, walk_moments
from daruma.graph.timeline._walk import Visit, Walk, Walked, Written
from daruma.state.failure import Failure
from daruma.state.savepoint import Savepoint
from daruma.state.steps import Audit, Grant, LeftOut, Step
from daruma.state.task import Amounts
from daruma.state.usage import Attempt, Failover, Usage

# --- Calls on one line, and edits as differences.


@pytest.mark.parametrize(
    ("tool", "args", "title"),
    [
        ("run_command", {"command": "pytest -x"}, "$ pytest -x"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, "view a.py"),
        ("search", {"pattern": "def add", "glob": "*.py"}, "search def add *.py"),
        ("look_up", {"ids": [1, 2], "text": "long " * 50}, "look_up [1, 2]"),
        ("run_tests", {}, "run_tests"),
        ("shout", {"text": "hi", "times": 2}, "shout hi 2"),
        ("shout", {"text": "x" * 81}, "shout"),
    ],
)
def test_a_call_is_one_line(tool: str, args: dict[str, Any], title: str) -> None:
    """What it does to what; long arguments are left to the details."""
    assert call_title(tool, args) == title


def test_an_edit_is_a_unified_diff() -> None:
    """Of its own two texts."""
    diff = edit_diff({"path": "a.py", "old_str": "a\nb\n", "new_str": "a\nc\n"})

    assert diff == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c"


def test_a_huge_edit_is_not_compared_line_by_line() -> None:
    """Comparing would take minutes; what was cut is counted."""
    diff = edit_diff({"path": "a", "old_str": "x\n" * 5000, "new_str": "y\n" * 5000})

    assert diff.count("\n") < 2 * MOST_LINES + 10
    assert diff.endswith(f"{10_000 - 2 * MOST_LINES} more lines")


@pytest.mark.parametrize(
    ("tool", "output", "ok"),
    [
        ("run_command", "exit code: 0\nfine", True),
        ("run_command", "exit code: 1\nred", False),
        ("search", "exit code: 1", True),
        ("run_tests", "pytest -q: passed, ruff check: failed (exit 1)\n\nred", False),
        ("run_tests", "pytest -q: timed out", False),
        ("run_tests", "pytest -q: none, there are no tests\n\n: failed", True),
    ],
)
def test_a_command_that_ended_otherwise_than_with_0_did_not_go_well(
    tool: str, output: str, ok: bool
) -> None:
    """MO-10: its call went well, and a reader asks for more; nor did checks that are red."""
    assert call_moment(tool, {}, output, ok=True).ok is ok


def test_other_calls_have_no_diff() -> None:
    """Nor do their arguments lose anything."""
    assert edit_diff({"text": "a"}) == ""
    assert arguments_text({"text": "a", "n": 1}) == "text: a\nn: 1"


# --- What steps and the walk tell: prices, failovers, grants, rollbacks, savepoints, questions.


def a_step(**details: Any) -> Step:
    (step,) = taken("think", at=1.0, seconds=2.0, ok=True, **details)
    return step


def test_a_step_tells_what_its_calls_cost() -> None:
    """Failed requests that were charged for too; without a price there is none."""
    charged = Usage(role="main", model="a", input_tokens=5, output_tokens=1, usd=0.25)
    failover = Failover(
        requested="a",
        used="b",
        attempts=(Attempt(model="a", error="cut off", then="next model", usage=charged),),
    )
    usage = Usage(role="main", model="b", input_tokens=10, output_tokens=2, usd=0.5)

    told = step_moment(a_step(usage=usage, audit=Audit(message_id="m", failover=failover)))

    assert (told.model, told.tokens, told.usd) == ("b", 18, 0.75)
    assert told.note == "b answered after a: cut off"
    assert step_moment(a_step(usage=replace(usage, usd=None))).usd is None


def test_calls_that_were_left_out_are_counted() -> None:
    """A reader must know that the answer asked for more."""
    left = LeftOut(total=5, executed=2, omitted=3, limit=2, names=())

    assert (
        step_moment(a_step(audit=Audit(message_id="m", left_out=left))).note
        == "3 of 5 calls left out"
    )


@pytest.mark.parametrize(
    ("stopped", "title"),
    [
        (True, "the task's budget was spent: the work stops"),
        (False, "the task's budget was spent: 500 tokens more granted"),
    ],
)
def test_a_grant_is_told(stopped: bool, title: str) -> None:
    """What a person said when a budget had run out."""
    grant = Grant(node="main", scope="task", more=Amounts(tokens=500), stopped=stopped)

    assert step_moment(a_step(grant=grant)).title == title


@pytest.mark.parametrize(
    ("written", "ok", "title"), [((), True, "rollback"), (("x",), False, "rollback failed")]
)
def test_a_rollback_is_told_with_its_end(written: tuple[str, ...], ok: bool, title: str) -> None:
    """Where it failed, a failure was written."""
    failures = tuple(
        Written("t", "failure", Failure(code="rollback_failed", node="rollback", message=each))
        for each in written
    )
    walked = Walked(
        Superstep("", "1", None, 1.0, written=failures), (Visit("rollback", 1.0, 2.0),), 3.0
    )

    (told,) = [each for each in walk_moments(Walk((walked,)), "") if each.kind == "rollback"]

    assert (told.title, told.ok, told.seconds) == (title, ok, 2.0)


def test_a_savepoint_without_a_snapshot_says_so() -> None:
    """It can not be gone back to; what was rolled back is kept under its name."""
    point = Savepoint(
        id="1", task_id="t/1", when="task", workspace="w", snapshot=None, undo="u1", at=1.0
    )

    told = savepoint_moment(point)

    assert (told.ok, told.note) == (False, "no snapshot; what was rolled back is kept as u1")
    assert savepoint_moment(replace(point, snapshot="s", undo=None)).note == ""


@pytest.mark.parametrize(
    ("opened", "output", "note"),
    [(frozenset[str](), "Blue", ""), (frozenset({"q"}), "", "waits for an answer")],
)
def test_a_question_is_told_with_its_answer(opened: frozenset[str], output: str, note: str) -> None:
    """One that is open has none: a reply that stands there was to the question before."""
    asked = Interrupt({"type": "question", "question": "Which?"}, id="q")
    written = (
        Written("t", "__interrupt__", (asked,)),
        Written("t", "__resume__", [{"answer": "Red"}, {"answer": "Blue"}]),
    )
    visits = (Visit("clarify", 1.0, 4.0),)
    walked = Walked(Superstep("", "1", None, 1.0, written=written), visits, 5.0)

    (told,) = question_moments(walked, opened, "", {})

    assert (told.title, told.output, told.note) == ("Which?", output, note)


def test_a_members_question_is_told_by_the_member() -> None:
    """The task's own record holds it too."""
    asked = Written("t", "__interrupt__", (Interrupt({"question": "Which?"}, id="q"),))
    walked = Walked(Superstep("", "1", None, 1.0, written=(asked,)), (Visit("member", 1.0),))

    assert [*question_moments(walked, frozenset(), "", {})] == []


# --- Times as people say them.


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0.0 s"),
        (0.42, "0.4 s"),
        (59.99, "59.9 s"),
        (60, "1 min 0 s"),
        (125.4, "2 min 5 s"),
        (3 * 3600 + 125, "3 h 2 min"),
    ],
)
def test_a_time_is_told_in_the_two_units_that_matter(seconds: float, said: str) -> None:
    assert render_duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.9, "0 s"), (59.9, "59 s"), (119.9, "1 min 59 s"), (3661, "1 h 1 min")]
)
def test_a_time_that_still_runs_is_told_in_whole_seconds(seconds: float, said: str) -> None:
    """None of them before it is over."""
    assert render_duration(seconds, whole=True) == said


@pytest.mark.parametrize(("seconds", "said"), [(None, ""), (0.0, ""), (0.04, ""), (0.05, "0.1 s")])
def test_what_took_no_time_is_not_told(seconds: float | None, said: str) -> None:
    assert render_duration_if_any(seconds) == said
