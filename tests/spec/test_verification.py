"""Chapter 6: verification and reflection (VE)."""

from pathlib import Path
from typing import Any

import pytest
from tests.spec.face import ALLOWED, Run, call, calls, command, create, plan, say

CHECKED: dict[str, Any] = {
    "verification": {"commands": ["test -f ok"]},
    "spec_review": {"enabled": False},
    "tools": ALLOWED,
}
ALWAYS: dict[str, Any] = CHECKED | {"verification": {"enabled": True, "commands": ["test -f ok"]}}
OK = calls(create("ok", "ok\n"))
MESS = calls(create("mess", "a mess\n"))
HM = say("I see what is wrong.")
GREEN = "def test_it():\n    assert True\n"
RED = "def test_it():\n    assert False\n"


def ended(
    workspace: Path,
    *main: Any,
    files: dict[str, str] | None = None,
    goal: str = "Do it",
    **more: Any,
) -> Run:
    """A task in a workspace with these files, to its end; three more words follow where needed."""
    for name, text in (files or {}).items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    script = {"main": [*main, *[say("All tests pass.")] * 4], "reflect": [HM] * 2}
    return Run(script, workspace=workspace, **CHECKED | more).ask(goal)


ONCE: dict[str, Any] = {"verification": {"max_reinjections": 0}, "budgets": {"reflect": 0}}
"""Settings with no checks but those that are recognised, which are run once."""


def test_verification_happens_once_at_the_final_answer(workspace: Path) -> None:
    """VE-01: by the graph; what the agent runs for itself does not count as it."""
    own = calls(call("run_tests", "t"), command("test -f ok", "c"))
    run = ended(workspace, OK, own, say())

    assert run.nodes.count("verify") == 1
    assert run.nodes.index("verify") > len(run.nodes) - 1 - run.nodes[::-1].index("main")
    assert "run_tests" in run.model.asked()[0].tools
    assert len(run.result.verifications) == 1
    assert run.result.headline == "completed"


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"test_it.py": GREEN}, ["pytest -x -q"]),
        ({"ruff.toml": "", "code.py": "ONE = 1\n"}, ["pytest -x -q", "ruff check"]),
        ({"go.mod": "module x\n"}, ["go test ./..."]),
    ],
)
def test_checks_are_recognised_by_manifests(
    files: dict[str, str], commands: list[str], workspace: Path
) -> None:
    """VE-02: beside declared ones; ruff only where it is configured."""
    declared = {"verification": {"commands": ["test -f ok"], "max_reinjections": 0}}
    run = ended(workspace, OK, say(), files=files, **ONCE | declared)

    assert {*run.happened("verification_started")[0]["commands"]} == {*commands, "test -f ok"}


def test_nothing_to_run_passes_and_says_so(workspace: Path) -> None:
    """VE-02: it is completed, and not checked."""
    run = ended(workspace, MESS, say(), files={"notes.txt": "nothing\n"}, **ONCE)

    assert run.result.headline == "completed, not checked"
    assert "nothing to verify" in run.result.checked.why


def test_a_red_verification_is_put_back_first(workspace: Path) -> None:
    """VE-03: as a short excerpt, while that lasts; then it is reflected on."""
    line = "python3 -c \"print('x' * 90_000); raise SystemExit('the reason')\""
    run = ended(workspace, MESS, say(), say(), verification={"commands": [line]})

    asked = run.model.asked()
    assert "the reason" in asked[2].text
    assert "the reason" not in asked[1].text
    assert len(asked[2].text) < 30_000
    verified = [n for n, node in enumerate(run.nodes) if node in ("verify", "reflect")]
    assert [run.nodes[n] for n in verified][:3] == ["verify", "verify", "reflect"]


def test_a_reflection_enters_the_next_attempt(workspace: Path) -> None:
    """VE-04: a model call of its own; if it fails, the attempt goes on without it."""
    none = CHECKED | {"verification": {"commands": ["test -f ok"], "max_reinjections": 0}}
    script = {"main": [MESS, say(), OK, say()], "reflect": [say("Make a file named ok.")]}
    told = Run(script, workspace=workspace, **none).ask()
    for file in workspace.iterdir():
        file.unlink()
    failing = {"main": [MESS, say(), OK, say()], "reflect": [{"raise": "down"}]}
    silent = Run(failing, workspace=workspace, **none).ask()

    (asked,) = told.model.asked("reflect")
    assert asked.tools == {}
    assert "test -f ok" in asked.text
    assert "Make a file named ok." in told.model.asked()[2].text
    assert told.happened("reflected")[0]["text"] == "Make a file named ok."
    for run in (told, silent):
        assert run.result.headline == "completed"


@pytest.mark.parametrize("mode", ["react", "plan_exec"])
def test_without_a_pass_the_task_has_given_up(mode: str, workspace: Path) -> None:
    """VE-05: a failure everywhere."""
    script = {
        "plan": [plan("one")],
        "main": [MESS, *[say("All is green.")] * 4],
        "reflect": [HM] * 2,
    }
    run = Run(script, mode=mode, workspace=workspace, **CHECKED).ask()

    assert run.result.status == "gave_up_after_reflections"
    assert not run.result.completed
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "verification_failed"
    assert all(each.status == "failed" for each in run.result.phases)


def test_checks_run_in_the_sandbox_with_a_timeout(workspace: Path, tmp_path: Path) -> None:
    """VE-06: whatever they try; a command that leaves the workspace is refused."""
    outside = tmp_path / "outside"

    def red(line: str, **more: Any) -> Run:
        for file in workspace.iterdir():
            file.unlink()
        checks = {"commands": [line], "max_reinjections": 0, **more}
        return ended(workspace, MESS, say(), verification=checks, budgets={"reflect": 0})

    late = red("sleep 99", timeout=0.2)
    leaving = red("cat ../../etc/passwd")
    writing = red(f"python3 -c \"open('{outside}', 'w')\"")

    assert late.result.verifications[0].checks[0].timed_out
    assert "leaves the workspace" in leaving.result.output
    assert not outside.exists()
    assert not late.result.completed
    assert not leaving.result.completed
    assert writing.result.verifications[0].checks[0].sandbox != "none"


OLD = {"test_it.py": GREEN, "test_old.py": RED.replace("test_it", "test_old")}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("writes", "goal", "headline"),
    [
        ({"new.txt": "x\n"}, "Do it", "completed, not checked"),
        ({"new.txt": "x\n"}, "Mend test_old", "failed"),
        ({"test_new.py": RED}, "Do it", "failed"),
    ],
)
def test_what_was_broken_before_is_not_the_tasks_fault(
    writes: dict[str, str], goal: str, headline: str, workspace: Path
) -> None:
    """VE-07: unless it is asked for; and what the task broke is."""
    turn = calls(*(create(name, text) for name, text in writes.items()))
    run = ended(workspace, turn, say(), files=OLD, goal=goal, **ONCE)

    assert run.result.headline == headline
    assert "test_old" in str(run.result.verifications[-1].to_dict())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("path", "text", "goal", "completed"),
    [
        ("conftest.py", "import os\n\nos._exit(0)\n", "Do it", False),
        ("conftest.py", 'collect_ignore = ["test_it.py"]\n', "Do it", False),
        ("test_more.py", GREEN, "Do it", True),
    ],
)
def test_a_green_exit_code_is_not_enough(
    path: str, text: str, goal: str, completed: bool, workspace: Path
) -> None:
    """VE-08: pytest has to tell its summary, and no test may be gone; changed tests are told."""
    files = {"test_it.py": GREEN, "test_other.py": GREEN}
    run = ended(workspace, calls(create(path, text)), say(), files=files, goal=goal, **ONCE)

    assert run.result.completed == completed
    assert path in run.result.verifications[-1].changed_tests
    assert path in run.happened("verification_completed")[-1]["changed_tests"]


def test_checks_cost_what_they_cost_alone(workspace: Path) -> None:
    """VE-09: no plugins of Daruma's own environment; all verifications stay in the result."""
    seen = "def test_it(request):\n    names = str(request.config.pluginmanager.get_plugins())\n"
    seen += (
        "    assert 'hypothesis' not in names.lower(), 'loaded'\n    assert 'xdist' not in names\n"
    )
    run = ended(workspace, MESS, say(), files={"test_it.py": seen}, **ONCE)
    for file in workspace.iterdir():
        if file.is_file():
            file.unlink()
    again = ended(workspace, MESS, say(), OK, say())

    assert run.result.headline == "completed", run.result.output
    assert [each.outcome for each in again.result.verifications] == ["failed", "passed"]
    assert all(each.seconds > 0 for each in again.result.verifications)


def test_output_of_checks_is_on_record(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """VE-10: in result, timeline and events, bounded, with keys masked."""
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    line = f"python3 -c \"print('the reason {key}' + ' x' * 900_000); raise SystemExit(1)\""
    checks: dict[str, Any] = {"verification": {"commands": [line], "max_reinjections": 0}}
    run = ended(workspace, MESS, say(), budgets={"reflect": 0}, **checks)

    output = run.result.verifications[0].checks[0].output
    (event,) = [each for each in run.happened("command_run") if each["purpose"] == "verification"]
    timeline = run.graph.timeline(run.config)
    (moment,) = [each for each in timeline.moments if "the reason" in str(each)][:1]
    for text in (output, event["output"], str(moment)):
        assert "the reason" in text
        assert key not in text
        assert len(text) < 100_000
