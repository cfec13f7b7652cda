"""What becomes of a failed phase: validation passes or fails, rollback does what it does, in git
or outside of it."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, phases, say, unclosed

from daruma.graph.history import UndoRefused

OPENED, CLOSED, FAILED = (f"phase_rollback_{how}" for how in ("started", "completed", "failed"))
TIMES_OUT = "rm -f left.txt && exec sleep 30"
BREAKS = calls(call("run_command", command="echo left > left.txt; echo broken > kept.txt"))
SCRIPT_TAIL: dict[str, Any] = {"main": [BREAKS, say(), say()], "reflect": [say("Hm.")] * 2}


@dataclass(frozen=True)
class Case:
    """A phase's commands, and what has to come of them."""

    validation: str | None
    rollback: str | None
    told: tuple[str, ...]
    held: bool
    kept: str
    savepoints: tuple[str, ...]


DONE = ("1", "1/a", "1/a/done", "1/b", "1/b/done")
UNDO = "rm left.txt; echo kept > kept.txt"
CASES = {
    "passes, not needed": Case("true", UNDO, ("phase_failed",), False, "broken", DONE),
    "fails, passes": Case("false", UNDO, ("phase_failed", OPENED, CLOSED), False, "kept", DONE),
    "fails, fails": Case(
        "false", "exit 3", ("phase_failed", OPENED, FAILED), True, "broken", ("1", "1/a")
    ),
    "fails, absent": Case("false", None, ("phase_failed",), False, "broken", DONE),
    "fails, times out": Case(
        "false", TIMES_OUT, ("phase_failed", OPENED, FAILED), True, "broken", ("1", "1/a")
    ),
}
"""Validation and rollback; ``savepoints`` are those on record once nothing runs any more."""


@pytest.fixture(params=["git", "no git"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with one file, committed, and changed since."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "kept.txt").write_text("committed\n")
    if request.param == "git":
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(work)]
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
            subprocess.run([*git, *arguments], check=True)
    (work / "kept.txt").write_text("kept\n")
    return work


def run_of(workspace: Path, case: Case) -> Run:
    commands = {"validation_command": case.validation, "rollback_command": case.rollback}
    plan = phases({"id": "a", **commands}, {"id": "b"}, {"id": "c", "depends_on": ["a"]})
    script = {
        **SCRIPT_TAIL,
        "plan": [plan],
        "main": [*SCRIPT_TAIL["main"], *[say("B is done.")] * 2],
    }
    given = settings(
        budgets={"preset": "frugal"},
        spec_review={"enabled": False},
        rollback={"default_timeout": 1.0},
        tools={"policy": {"run_command": "allow"}},
        verification={"commands": ["test ! -e left.txt || grep -q committed kept.txt"]},
    )
    return Run(script, settings=given).ask(mode="plan_exec", workspace=str(workspace))


def git_of(workspace: Path) -> dict[str, bytes]:
    """Everything of the user's own git."""
    files = (path for path in (workspace / ".git").rglob("*") if path.is_file())
    return {str(path.relative_to(workspace)): path.read_bytes() for path in files}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CASES)
def test_a_failed_phase(workspace: Path, name: str) -> None:
    """RO-02, RO-03, RO-05: the order, the end, what is there after it, and what resume builds on.

    The other phase goes on where the state can be built on, and only there.
    """
    case, git = CASES[name], git_of(workspace)
    run = run_of(workspace, case)

    told = [e["type"] for e in run.events if e.get("phase_id") == "a" and "phase" in e["type"]]
    assert tuple(told[1:]) == case.told
    assert (workspace / "kept.txt").read_text().strip() == case.kept
    assert tuple(each.id for each in run.state.savepoints) == case.savepoints
    assert bool(run.snapshot.interrupts) is case.held
    assert {p.id: p.status for p in run.result.phases} == {
        "a": "failed",
        "b": "pending" if case.held else run.result.phases[1].status,
        "c": "failed",
    }
    assert run.result.error_struct is not None
    assert (run.result.error_struct.error_code == "rollback_failed") is case.held
    assert unclosed(run.events) == ["1 question, 0 closed"] * case.held
    assert git_of(workspace) == git


@pytest.mark.sampled(1)
def test_a_held_thread_takes_nothing_new(workspace: Path) -> None:
    """RO-03: until somebody has said what is to become of what the rollback left."""
    run = run_of(workspace, CASES["fails, fails"])

    with pytest.raises(Exception, match="waits for an answer"):
        run.ask("Something else")

    assert run.question.value["options"] == ["retry", "restore", "keep"]
    assert "rollback_failed" in run.question.value["question"]


@pytest.mark.sampled(1)
def test_keeping_the_files_lets_the_others_go_on(workspace: Path) -> None:
    """RO-03: a person looked; the task still ends as what it is, and its record says who chose."""
    run = run_of(workspace, CASES["fails, fails"])
    run.reply({"answer": "Keep"})

    assert [p.id for p in run.result.phases if p.status != "pending"] == ["a", "b", "c"]
    assert run.result.status == "gave_up_after_reflections"
    assert any("a person kept the files" in note for note in run.result.notes)
    assert run.happened("rollback_decided")[0]["decision"] == "keep"
    assert run.snapshot.interrupts == ()
    assert unclosed(run.events) == []


@pytest.mark.long
def test_a_retry_that_fails_again_asks_again(workspace: Path) -> None:
    """RO-03: each time it is another question."""
    run = run_of(workspace, CASES["fails, fails"])
    first = run.question.value["id"]
    run.reply({"answer": "retry"})

    assert run.question.value["id"] != first
    assert [e["type"] for e in run.events if e["type"] in (OPENED, FAILED)] == [OPENED, FAILED] * 2


@pytest.mark.sampled(1)
def test_a_retry_that_works_goes_on(workspace: Path) -> None:
    """RO-03: what was in its way is gone."""
    flaky = Case("false", "test -e mended && rm left.txt", (), True, "", ())
    run = run_of(workspace, flaky)
    (workspace / "mended").touch()
    run.reply({"answer": "retry"})

    assert run.snapshot.interrupts == ()
    assert not (workspace / "left.txt").exists()
    assert "1/a/done" in [each.id for each in run.state.savepoints]
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "verification_failed"


def test_what_a_rollback_did_itself_is_not_told_as_somebody_elses(workspace: Path) -> None:
    """RO-07: a pipe can not be made again, the files are back, and nobody else was there."""
    os.mkfifo(workspace / "pipe")
    breaks = calls(call("run_command", command="rm pipe; echo broken > kept.txt"))
    plan = phases({"id": "a", "rollback": "snapshot"})
    script = {**SCRIPT_TAIL, "plan": [plan], "main": [breaks, say(), say()]}
    given = settings(
        budgets={"preset": "frugal"},
        spec_review={"enabled": False},
        tools={"policy": {"run_command": "allow"}},
        verification={"commands": ["false"]},
    )
    run = Run(script, settings=given).ask(mode="plan_exec", workspace=str(workspace))
    assert (workspace / "kept.txt").read_text() == "kept\n"

    run.reply({"answer": "keep"})

    assert run.happened("workspace_drifted") == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("reply", [{"answer": "what?"}, {"answer": " "}, {"decision": "keep"}])
def test_an_answer_that_is_none_leaves_it_held(workspace: Path, reply: dict[str, str]) -> None:
    """The options are named; nothing has changed."""
    run = run_of(workspace, CASES["fails, fails"])

    with pytest.raises(Exception, match=r"has to be one of: retry|has the form"):
        run.reply(reply)

    assert run.question.value["type"] == "question"


def test_what_is_tried_again_meets_the_files_it_knows(workspace: Path) -> None:
    """RO-07 and TL-23: what was rolled back is there again, what came later is not."""
    plan = phases({"id": "a", "rollback": "snapshot"}, {"id": "b"})
    script = {
        **SCRIPT_TAIL,
        "plan": [plan],
        "main": [BREAKS, say(), say(), calls(call("run_command", command="touch b")), say("B.")],
    }
    given = settings(
        budgets={"preset": "frugal"},
        spec_review={"enabled": False},
        tools={"policy": {"run_command": "allow"}},
        verification={"commands": ["test -e b"]},
    )
    run = Run(script, settings=given).ask(mode="plan_exec", workspace=str(workspace))
    (workspace / "mine").touch()
    assert not (workspace / "left.txt").exists()

    run.graph.reopen(run.config)

    assert (workspace / "left.txt").exists()
    assert not (workspace / "b").exists()
    assert (workspace / "mine").exists()


def test_a_name_that_is_used_again_finds_nothing_of_the_earlier_thread(workspace: Path) -> None:
    """RO-07: a checkpointer in memory ends with its process, and what it kept of files with it."""
    script = {"main": [BREAKS, say(), say(), say()], "reflect": [say("Hm.")]}
    given = settings(tools={"policy": {"run_command": "allow"}}, verification={"enabled": False})
    first = Run(script, settings=given).ask(mode="react", workspace=str(workspace))
    (workspace / "kept.txt").write_text("somebody else's\n")
    second = Run(script, settings=given).ask(mode="react", workspace=str(workspace))
    (savepoint,) = first.state.savepoints

    assert second.happened("workspace_drifted") == []
    with pytest.raises(UndoRefused, match="is on this machine"):
        second.graph.undo(second.config, to=savepoint.snapshot)
    assert first.graph.undo(first.config).exact
