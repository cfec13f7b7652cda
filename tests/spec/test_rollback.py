"""Chapter 8: what becomes of the files of a phase that failed."""

import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.spec.face import ALLOWED, Run, calls, command, create, plan, refused, say

SETTINGS: Final[dict[str, Any]] = {
    "mode": "plan_exec",
    "spec_review": {"enabled": False},
    "budgets": {"preset": "frugal", "reflect": 0, "verify": 1},
    "fallback_chain": {"recovery": {"enabled": False}},
    "tools": ALLOWED,
}
BREAKS: Final = calls(command("echo broken > kept.txt; echo left > left.txt"))
STARTED, COMPLETED, FAILED = (f"phase_rollback_{how}" for how in ("started", "completed", "failed"))


def failed_phase(workspace: Path, *more: str, **of_the_phase: Any) -> Run:
    """A run whose first phase breaks a file and fails its check; ``more`` are phases after it."""
    (workspace / "kept.txt").write_text("kept\n")
    others = [{"id": id_, "title": id_} for id_ in more]
    script = {
        "plan": [plan({"id": "a", "title": "A", **of_the_phase}, *others)],
        "main": [BREAKS, *[say()] * 5],
    }
    checks: dict[str, Any] = {"commands": ["! grep -q broken kept.txt"]}
    return Run(script, workspace=workspace, verification=checks, **SETTINGS).ask()


def files(workspace: Path) -> dict[str, str]:
    """The text of each file outside of ``.git``."""
    found = (each for each in workspace.rglob("*") if each.is_file() and ".git" not in each.parts)
    return {str(each.relative_to(workspace)): each.read_text() for each in found}


def told(run: Run) -> list[str]:
    """What was told of the phase's end, in order."""
    return [
        each["type"] for each in run.events if each["type"].startswith(("phase_rollb", "phase_fa"))
    ]


def savepoints(run: Run) -> list[str]:
    """The savepoints that are on record."""
    return [each.id for each in run.graph.savepoints(run.config)]


# --- RO-01, RO-02: what is rolled back, and when.


@pytest.mark.parametrize("validation", [None, "false"])
def test_nothing_is_rolled_back_that_did_not_ask_for_it(
    workspace: Path, validation: str | None
) -> None:
    """RO-01: without a rollback the files stay as the failed phase left them."""
    run = failed_phase(workspace, validation_command=validation)

    assert run.result.status != "completed"
    assert files(workspace) == {"kept.txt": "broken\n", "left.txt": "left\n"}
    assert told(run) == ["phase_failed"]


@pytest.mark.parametrize("how", [{"rollback": "snapshot"}, {"rollback_command": "rm left.txt"}])
def test_a_phase_that_went_well_is_never_rolled_back(workspace: Path, how: dict[str, Any]) -> None:
    """RO-01: rollback is for what failed."""
    script = {"plan": [plan({"id": "a", **how})], "main": [calls(create("left.txt", "x")), say()]}
    run = Run(script, workspace=workspace, **SETTINGS).ask()

    assert run.result.status == "completed"
    assert files(workspace) == {"left.txt": "x"}


@pytest.mark.parametrize(
    ("validation", "after", "events"),
    [
        ("true", "broken\n", ["phase_failed"]),
        ("false", "undone\n", ["phase_failed", STARTED, COMPLETED]),
        (None, "undone\n", ["phase_failed", STARTED, COMPLETED]),
    ],
)
def test_only_what_fails_its_validation_is_rolled_back(
    workspace: Path, validation: str | None, after: str, events: list[str]
) -> None:
    """RO-02: the phase and its dependents fail first, then validation, rollback, savepoint."""
    undo = "echo undone > kept.txt; rm left.txt"
    run = failed_phase(workspace, "b", validation_command=validation, rollback_command=undo)
    phase = run.result.phases[0]

    assert files(workspace)["kept.txt"] == after
    assert told(run)[: len(events)] == events
    assert (phase.validation_run is not None) == (validation is not None)
    assert "1/a/done" in savepoints(run)


def test_dependents_fail_before_anything_is_rolled_back(workspace: Path) -> None:
    """RO-02: FAILED for all of them stands on record by the time the commands run."""
    (workspace / "kept.txt").write_text("kept\n")
    on_top = {"id": "b", "title": "B", "depends_on": ["a"]}
    script = {
        "plan": [plan({"id": "a", "rollback_command": "echo undone > kept.txt"}, on_top)],
        "main": [BREAKS, say()],
    }
    red: dict[str, Any] = {"verification": {"commands": ["false"]}}
    run = Run(script, workspace=workspace, **SETTINGS, **red).ask()

    assert [phase.status for phase in run.result.phases] == ["failed", "failed"]
    assert run.happened("phase_failed")[0]["fallen"] == ("b",)
    assert told(run) == ["phase_failed", STARTED, COMPLETED]


# --- RO-03: after a rollback that failed.


def test_after_a_failed_rollback_nothing_is_built_on_what_it_left(workspace: Path) -> None:
    """RO-03: no savepoint, no further phase, `rollback_failed`, until somebody answers."""
    run = failed_phase(workspace, "b", rollback_command="exit 3")

    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "rollback_failed"
    assert savepoints(run) == ["1", "1/a"]
    assert [each["phase_id"] for each in run.happened("phase_started")] == ["a"]
    assert "waits" in refused(lambda: run.ask("Something else"))
    assert run.question.value["options"] == ["retry", "restore", "keep"]


@pytest.mark.parametrize(
    ("answer", "after"),
    [("keep", {"kept.txt": "broken\n", "left.txt": "left\n"}), ("restore", {"kept.txt": "kept\n"})],
)
def test_a_person_says_what_becomes_of_it(
    workspace: Path, answer: str, after: dict[str, str]
) -> None:
    """RO-03: then, and only then, the phases that do not depend on it go on."""
    run = failed_phase(workspace, "b", rollback_command="exit 3").reply({"answer": answer})

    assert files(workspace) == after
    assert [each["phase_id"] for each in run.happened("phase_started")] == ["a", "b"]
    assert run.snapshot.interrupts == ()


# --- RO-04, RO-05: the commands, and what is told.


def test_rollback_commands_run_in_the_workspace_and_are_on_record(workspace: Path) -> None:
    """RO-04: nobody is asked; each run has its command, output, exit code and end."""
    tools: dict[str, Any] = {"tools": {"policy": {"run_command": "confirm"}}}
    undo = "pwd; echo for people >&2; echo kept > kept.txt; exit 7"
    (workspace / "kept.txt").write_text("kept\n")
    phase = {"id": "a", "validation_command": "exit 5", "rollback_command": undo}
    script = {"plan": [plan(phase)], "main": [calls(create("left.txt", "left\n")), say()]}
    red: dict[str, Any] = {"verification": {"commands": ["false"]}}
    run = Run(script, workspace=workspace, **SETTINGS | tools, **red).ask()
    phase_run = run.result.phases[0]
    validation, rollback = phase_run.validation_run, phase_run.rollback_run
    assert validation
    assert rollback

    assert (validation.command, validation.exit_code, validation.passed) == ("exit 5", 5, False)
    assert (rollback.command, rollback.exit_code, rollback.passed) == (undo, 7, False)
    assert {str(workspace), "for people"} <= set(rollback.output.splitlines())
    assert (rollback.stdout, rollback.stderr) == (str(workspace), "for people")
    assert validation.to_dict() | {"stdout": "", "stderr": ""} == validation.to_dict()
    assert not rollback.timed_out
    audited = [(each["purpose"], each["exit_code"]) for each in run.happened("command_run")]
    assert audited[-2:] == [("validation", 5), ("rollback", 7)]


def test_a_rollback_command_is_ended_with_its_children_when_its_time_is_up(
    workspace: Path,
) -> None:
    """RO-04: nothing of it lives on; a rollback that ran out of time has failed."""
    pipe = workspace / "life"
    os.mkfifo(pipe)
    life = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    undo = "(exec 9> life; trap '' TERM; sleep 300) & sleep 300"
    soon: dict[str, Any] = {"rollback": {"default_timeout": 0.5}}
    script = {"plan": [plan({"id": "a", "rollback_command": undo})], "main": [BREAKS, say()]}
    red: dict[str, Any] = {"verification": {"commands": ["false"]}}
    run = Run(script, workspace=workspace, **SETTINGS, **soon, **red).ask()

    undone = run.result.phases[0].rollback_run
    assert undone
    assert undone.timed_out
    assert run.happened(FAILED)[0]["reason"]
    assert os.read(life, 1) == b""  # nobody holds it open
    os.close(life)


def test_at_level_none_a_person_agrees_to_the_commands_first(workspace: Path) -> None:
    """RO-04: the one level at which they are asked about; a no runs neither."""
    commands = {"validation_command": "touch validated", "rollback_command": "touch undone"}
    script = {"plan": [plan({"id": "a", **commands})], "main": [say("")]}
    unconfined: dict[str, Any] = {"sandbox": {"require": "none"}}
    run = Run(script, workspace=workspace, **SETTINGS, **unconfined).ask()
    (approval,) = run.approvals
    assert approval["required"]
    assert files(workspace) == {}
    run.decide(**{approval["approval_id"]: "deny"})

    assert files(workspace) == {}
    assert run.result.error_struct.error_code == "rollback_failed"  # type: ignore[union-attr]


def test_rollback_is_told_after_the_failure_and_by_how_it_ended(workspace: Path) -> None:
    """RO-05: failed, started, then completed or failed, each with its phase."""
    run = failed_phase(workspace, rollback="snapshot")
    assert told(run) == ["phase_failed", STARTED, COMPLETED]
    assert {each["phase_id"] for each in run.events if each["type"] in told(run)} == {"a"}

    (workspace / "again").mkdir()
    again = failed_phase(workspace / "again", rollback_command="exit 3")
    assert told(again) == ["phase_failed", STARTED, FAILED]


# --- RO-06, RO-07: snapshots.


def git(workspace: Path, *args: str) -> str:
    """Run the user's own git."""
    named = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
    done = subprocess.run(
        ["git", *named, "-C", str(workspace), *args], check=True, capture_output=True, text=True
    )
    return done.stdout


def state_of(workspace: Path) -> dict[str, Any]:
    """Everything that a snapshot has to bring back: kinds, modes, texts, links, empty folders."""
    found = {}
    for each in sorted(workspace.rglob("*")):
        if ".git" not in each.relative_to(workspace).parts:
            mode = each.lstat().st_mode
            text = each.readlink() if each.is_symlink() else each.is_file() and each.read_bytes()
            found[str(each.relative_to(workspace))] = (mode, text)
    return found


@pytest.mark.parametrize("in_git", [True, False], ids=["git", "no git"])
def test_a_snapshot_rollback_is_exact_and_leaves_git_alone(workspace: Path, in_git: bool) -> None:
    """RO-06: files, deletions, untracked files, modes and links; index, HEAD, stash, branches."""
    (workspace / "kept.txt").write_text("kept\n")
    (workspace / "gone.txt").write_text("gone\n")
    if in_git:
        git(workspace, "init", "-q", "-b", "main")
        git(workspace, "add", ".")
        git(workspace, "commit", "-qm", "one")
        (workspace / "kept.txt").write_text("stashed\n")
        git(workspace, "stash")
        (workspace / "staged.txt").write_text("staged\n")
        git(workspace, "add", "staged.txt")
    (workspace / "untracked.txt").write_text("untracked\n")
    (workspace / "run.sh").write_text("#!/bin/sh\n")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "link").symlink_to("kept.txt")
    (workspace / "empty").mkdir()
    users = {each: each.read_bytes() for each in (workspace / ".git").rglob("*") if each.is_file()}
    before = state_of(workspace)
    ruin = (
        "echo x > kept.txt; rm gone.txt untracked.txt link; chmod 644 run.sh; rmdir empty;"
        " echo x > empty; mkdir -p link/deep; echo x > new.txt"
    )
    script = {"plan": [plan({"id": "a", "rollback": "snapshot"})]}
    script |= {"main": [calls(command(ruin)), say()]}
    red: dict[str, Any] = {"verification": {"commands": ["false"]}}
    run = Run(script, workspace=workspace, **SETTINGS, **red).ask()
    (completed,) = run.happened(COMPLETED)

    assert state_of(workspace) == before
    assert completed["exact"] is True
    assert {
        each: each.read_bytes() for each in (workspace / ".git").rglob("*") if each.is_file()
    } == users


def test_every_savepoint_brings_its_files_along(workspace: Path) -> None:
    """RO-07: back to any of them, and forward again; each names its snapshot."""
    script = {
        "plan": [plan({"id": "a"}, {"id": "b"})],
        "main": [calls(create("a.txt", "a")), say(), calls(create("b.txt", "b")), say()],
    }
    run = Run(script, workspace=workspace, **SETTINGS).ask()
    found = run.graph.savepoints(run.config)
    assert [each.id for each in found] == ["1", "1/a", "1/a/done", "1/b", "1/b/done"]
    assert all(each.snapshot for each in found)

    restored = run.graph.undo(run.config, to="1/a/done")
    assert (files(workspace), restored.exact) == ({"a.txt": "a"}, True)
    run.graph.undo(run.config, to="1")
    assert files(workspace) == {}
    run.graph.undo(run.config, to=restored.before)
    assert files(workspace) == {"a.txt": "a", "b.txt": "b"}


def test_drift_between_files_and_state_is_told_before_anything_runs(workspace: Path) -> None:
    """RO-07: what changed while the thread waited; and what did not is not told."""
    script = {"main": [calls(create("a.txt", "a")), calls(command("cat a.txt")), say(), say()]}
    asked: dict[str, Any] = {"tools": {"policy": {"run_command": "confirm"}}}
    run = Run(script, workspace=workspace, **asked).ask()
    (workspace / "a.txt").write_text("by somebody else")
    seen = len(run.events)
    digest = run.approvals[0]["digest"]
    run.approve()
    kinds = [each["type"] for each in run.events[seen:]]

    assert run.happened("workspace_drifted")[0]["paths"] == ("a.txt",)
    assert "tool_started" not in kinds[: kinds.index("workspace_drifted")]
    assert run.approvals[0]["digest"] != digest  # what was approved is not what there is now
