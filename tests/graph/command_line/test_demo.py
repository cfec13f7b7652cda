"""The demo: what a newcomer sees first has to be real, and to end as it says."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.daruma_command import Daruma, Said

from daruma.graph.command_line._diagnosis import program_path
from daruma.graph.models import ScriptedChatModel
from daruma.graph.scenario import (
    Scenario,
    missing_programs,
    prepare,
    scenarios,
)
from daruma.tools.checks import recognised_commands


@pytest.fixture
def daruma(daruma: Daruma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Daruma:
    """The command, on a database of its own, with a folder of its own for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return daruma


def ending(said: Said) -> list[str]:
    return [line for line in said.out.splitlines() if line.startswith("───")]


@pytest.mark.long
def test_the_demo_falls_and_gets_up_again(daruma: Daruma) -> None:
    """Planned, reviewed, wrongly fixed, found red, reflected on, rightly fixed, green (FA-05).

    It says where the repository is, whose files, tests and history are real; settings that lie
    around do not matter.
    """
    daruma.configure("budgets: {think: 1}\n")

    said = daruma.run("demo")

    told = [
        "a scripted model plays", "a plan of", "the demo answers for you",
        "Is this plan right? confirmed",
        "[share + rest] + [share] * (people - 1)",
        "✗ $ pytest -x -q", "not verified", "[share + 1] * rest", "✓ $ pytest -x -q",
        "verified", "completed", "Try next", "daruma show demo-", "daruma graph",
    ]  # fmt: skip
    places = [said.out.find(text) for text in told]
    assert (said.code, said.err) == (0, "")
    assert -1 not in places, told[places.index(-1)]
    assert ending(said) == ["─── ✓ completed ───"]
    repository = Path(re.findall(r"repository: (\S+)", said.out)[0])
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=repository, check=False)
    changed = subprocess.run(
        ["git", "diff", "--name-only"], cwd=repository, check=True, capture_output=True, text=True
    )
    assert repository.is_relative_to(daruma.folder)
    assert tests.returncode == 0
    assert changed.stdout == "bill/split.py\n"


@pytest.mark.long
def test_the_other_demo_ends_honestly(daruma: Daruma) -> None:
    """A model that never gets it right: exit code 1, the status, and what the checks said."""
    said = daruma.run("demo", "gives-up", "--json")

    assert (said.code, said.json["status"]) == (1, "gave_up_after_reflections")
    assert said.json["budgets"]["reflect"] == 2
    assert "assert 18.25 == 16" in said.err
    assert "was asked for number" not in said.err  # its script is never asked for more


@pytest.mark.long
def test_seven_falls_are_got_up_from(daruma: Daruma) -> None:
    """Outages, an empty answer, a garbled call, red tests, a loop, a missing file: all overcome."""
    said = daruma.run("demo", "seven-falls", "--json")

    recovered = [(each["code"], each["strategy"], each["by"]) for each in said.json["recoveries"]]
    assert (said.code, said.json["status"]) == (0, "completed"), said.json["error_message"]
    assert recovered == [
        ("llm_failure", "parameter-adjustment", "rule"),
        ("llm_failure", "retry", "model"),
        ("llm_failure", "parameter-adjustment", "rule"),
        ("loop_detected", "alternative-tool", "model"),
    ]
    assert all(each["worked"] for each in said.json["recoveries"])
    assert said.json["budgets"]["reflect"] == 1


@pytest.mark.long
def test_a_mess_is_put_back_and_the_others_go_on(daruma: Daruma) -> None:
    """RO-06: edits, new files, modes and an untracked note; the task ends failed all the same."""
    said = daruma.run("demo", "rollback", "--json")

    repository = Path(re.findall(r"repository: (\S+)", said.err)[0])
    changed = subprocess.run(
        ["git", "status", "--short"], cwd=repository, check=True, capture_output=True, text=True
    )
    phases = {each["id"]: each["status"] for each in said.json["phases"]}
    assert (said.code, said.json["status"]) == (1, "gave_up_after_reflections")
    assert phases == {"p1": "completed", "p2": "failed", "p3": "completed"}
    assert changed.stdout == " M README.md\n M bill/split.py\n?? notes.txt\n"
    assert (repository / "notes.txt").read_text().startswith("Ask Ann")
    assert (repository / "README.md").stat().st_mode & 0o777 != 0o600
    assert "[share + 1] * rest" in (repository / "bill" / "split.py").read_text()
    assert "rolled back: the files are exactly as before the phase" in said.err
    assert f"daruma undo {said.json['thread']} --list" in said.err
    assert "was asked for number" not in said.err


@pytest.mark.long
def test_a_demo_without_a_database_leaves_nothing_behind(daruma: Daruma) -> None:
    """Its repository goes again with the one line that says why."""
    folder = daruma.folder / "tmp"
    folder.mkdir()
    daruma.setenv("TMPDIR", str(folder))
    daruma.setenv("DARUMA_POSTGRES_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    daruma.setenv("DARUMA_POSTGRES_OUTAGE_SECONDS", "0")

    said = daruma.run("demo")

    assert (said.code, [*folder.iterdir()]) == (2, [])
    assert "set DARUMA_POSTGRES_URL" in said.err


def test_programs_that_the_checks_need_are_looked_for() -> None:
    """The demo runs real checks: it says what to install rather than fail half-way."""
    assert missing_programs("/nowhere") == ["pytest", "ruff"]
    assert missing_programs(program_path(Path.cwd())) == []


@pytest.mark.long
@pytest.mark.parametrize("scenario", scenarios(), ids=lambda scenario: scenario.name)
def test_a_scenario_is_whole(scenario: Scenario) -> None:
    """A script that can be played, and a repository that is checked, red, and clean otherwise."""
    ScriptedChatModel(script=yaml.safe_load((scenario.folder / "script.yaml").read_text()))
    repository = prepare(scenario)

    found = {
        command: subprocess.run(
            [sys.executable, "-m", *command.split()], cwd=repository, check=False
        ).returncode
        for command in asyncio.run(recognised_commands(repository))
    }

    assert found == {"pytest -x -q": 1, "ruff check": 0}
    assert (repository / ".git").is_dir()
