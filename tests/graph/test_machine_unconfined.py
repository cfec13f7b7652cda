"""At sandbox level none every command waits for a person: the model's, a check's, a plan's."""

from pathlib import Path
from typing import Any

import pytest
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, say

from daruma.graph.command_line._replies import yes_to

PASSING = "def test_it():\n    assert True\n"


def started(folder: Path, script: Any, mode: str = "react", **sections: Any) -> Run:
    (folder / "test_it.py").write_text(PASSING)
    given = settings(
        sandbox={"require": "none"},
        spec_review={"enabled": False},
        budgets={"preset": "frugal"},
        tools={"policy": {"run_*": "allow"}},
        **sections,
    )
    return Run(script, settings=given).ask(mode=mode, workspace=str(folder))


def asked(run: Run) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of the one open approval, which is a person's to give."""
    (approval,) = run.question.value["approvals"]
    assert (approval["required"], approval["sandbox"]) == (True, "none")
    assert yes_to([run.question]) == {}
    return approval["tool"], approval["args"]


MAIN = [calls(call("run_command", command="echo made > made.txt")), say("Done."), say("Done.")]
CHECKED = {"commands": ["echo x >> checked.txt && test -e made.txt"]}


@pytest.mark.long
@pytest.mark.parametrize("decision", ["approve", "deny"])
def test_checks_wait_for_a_person_too(decision: str, tmp_path: Path) -> None:
    """SE-04: what nobody agreed to is not run, and the result says that nothing was checked."""
    run = started(tmp_path, {"main": MAIN}, verification=CHECKED)
    assert asked(run) == ("run_command", {"command": "echo made > made.txt"})
    assert not (tmp_path / "made.txt").exists()
    run.approve()
    tool, args = asked(run)
    assert tool == "verification"
    assert args["commands"][-1] == CHECKED["commands"][0]
    assert not (tmp_path / "checked.txt").exists()
    run.decide(**{run.question.value["approvals"][0]["approval_id"]: decision})

    assert (tmp_path / "checked.txt").exists() is (decision == "approve")
    assert run.result.status == "completed"
    assert run.result.checked.outcome == ("passed" if decision == "approve" else "none")
    assert any("a person denied it" in note for note in run.result.notes) is (decision == "deny")
    (told,) = [e for e in run.happened("approval_completed") if "verif" in e["approval_id"]]
    assert told["decision"] == decision


def test_checks_of_what_was_changed_meanwhile_are_not_run(tmp_path: Path) -> None:
    """TL-13: the yes was one to the files as they were."""
    run = started(tmp_path, {"main": MAIN}, verification=CHECKED).approve()
    (tmp_path / "test_it.py").write_text("def test_it(): assert open('/etc/passwd')")
    run.approve()

    assert not (tmp_path / "checked.txt").exists()
    assert run.result.checked.outcome == "none"
    assert any("what was approved has changed" in note for note in run.result.notes)
