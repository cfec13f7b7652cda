"""The workspace's own checks and the declared ones are run once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import (
    a_context,
    a_phase,
    a_plan,
    a_state,
    a_task,
    no_sandbox,
    settings,
    taken,
)

from daruma.nodes.verify import verify
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.outcome import result_of
from daruma.tools.verification import declared_commands

STARTED, COMPLETED = "verification_started", "verification_completed"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace without anything that is recognised."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def run(work: Path | None, *commands: str, events: list[Event] | None = None) -> Any:
    context = a_context(given=settings(verification={"commands": commands}), events=events)
    task = a_task("plan_exec", workspace=str(work) if work else None)
    return await verify(State(task=task, steps=taken("verify")), context)


async def test_every_verification_stands_on_its_step(work: Path) -> None:
    """VE-09: with its time and its output; the result takes them from there.

    VE-03: red ones are told to the model, as an excerpt of what they said; VE-01: green ones not.
    """
    red = await run(work, "echo it is red; false")
    green = await run(work, "test -d .")
    (report,) = red["messages"]
    assert not red["verification"].passed
    assert "it is red" in report.text
    assert report.id == "t/1:verification:1"
    assert green["verification"].passed
    assert "messages" not in green
    told = [(s.kind, s.ok) for s in (*red["steps"], *green["steps"])]
    assert told == [("verify", False), ("verify", True)]
    steps = [*red["steps"], *green["steps"]]
    result = result_of(a_state(steps=steps), "completed", "", 0.0)

    assert [each.outcome for each in result.verifications] == ["failed", "passed"]
    first, _ = result.to_dict()["verifications"]
    assert first["outcome"] == "failed"
    assert first["seconds"] > 0
    assert "it is red" in first["checks"][0]["output"]


async def test_a_declared_command_that_leaves_the_workspace_is_red(work: Path) -> None:
    """VE-06: it is not run, and the reason is told."""
    update = await run(work, "touch ran && cat ../../etc/passwd")

    (check,) = update["verification"].checks
    assert (check.passed, check.exit_code) == (False, None)
    assert check.note == "refused: it leaves the workspace (../../etc/passwd)"
    assert not (work / "ran").exists()


async def test_nothing_to_run_passes_and_says_so(work: Path) -> None:
    """VE-02: with and without a workspace."""
    for place in (work, None):
        update = await run(place)

        assert update["verification"].passed
        assert "nothing to verify" in update["verification"].note


async def test_a_command_named_twice_is_run_once(work: Path) -> None:
    """By settings and phase, for example."""
    update = await run(work, "echo x >> log", "echo x >> log")

    assert len(update["verification"].checks) == 1
    assert (work / "log").read_text() == "x\n"


def test_settings_and_phase_declare_commands() -> None:
    """VE-02: only the phase at hand."""
    plan = a_plan(
        a_phase("a", validation_command="check a"),
        a_phase("b", validation_command="check b"),
        current="b",
    )
    context = a_context(given=settings(verification={"commands": ["all"]}))

    assert declared_commands(State(task=a_task(), plan=plan), context) == ("all", "check b")


async def test_a_workspace_that_is_gone_is_a_failure(work: Path) -> None:
    """It is no red result: nothing can be said about the work."""
    update = await run(work / "gone", "true")

    assert update["failure"].code == "workspace_conflict"
    assert "verification" not in update
    assert [(s.kind, s.ok) for s in update["steps"]] == [("verify", False)]


async def test_every_command_is_told(work: Path) -> None:
    """Between start and end (PL-04)."""
    events: list[Event] = []
    await run(work, "true", "false", events=events)

    assert [e.type for e in events] == [STARTED, "command_run", "command_run", COMPLETED]


@pytest.mark.long
async def test_a_verification_that_breaks_off_is_closed(work: Path) -> None:
    """PL-04: a command that can not be started at all ends it, too."""
    events: list[Event] = []
    await run(work, "true", "true " + "x" * 200_000, events=events)  # too long for one argument

    assert [e.type for e in events if e.type in {STARTED, COMPLETED}] == [STARTED, COMPLETED]


async def test_a_sandbox_that_can_not_be_had_is_a_failure(work: Path) -> None:
    """SA-01: what is required is not there, so nothing is run."""
    given = settings(verification={"commands": ("touch ran",)})
    context = replace(a_context(given=given), open_sandbox=no_sandbox)
    task = a_task("plan_exec", workspace=str(work))
    update: Any = await verify(State(task=task, steps=taken("verify")), context)

    assert (update["failure"].code, update["failure"].message) == ("sandbox_violation", "not here")
    assert not (work / "ran").exists()


async def test_without_checks_no_sandbox_is_opened(work: Path) -> None:
    """Opening it costs a proof; nobody is told that anything passed (MO-10)."""
    events: list[Event] = []
    context = replace(a_context(events=events), open_sandbox=no_sandbox)
    task = a_task("plan_exec", workspace=str(work))
    update: Any = await verify(State(task=task, steps=taken("verify")), context)

    assert update["verification"].passed
    ended = events[-1].to_dict()
    assert (ended["passed"], ended["outcome"]) == (None, "none")


async def test_the_level_is_on_every_check(work: Path) -> None:
    """SA-01: on the record and in the event, with what it leaves open."""
    events: list[Event] = []
    update = await run(work, "true", events=events)

    (check,) = update["verification"].checks
    (told,) = [event.to_dict() for event in events if event.type == "command_run"]
    assert (check.sandbox, told["sandbox"]) == ("none", "none")
    assert check.not_covered == told["not_covered"] != ()


async def test_the_event_says_how_an_exit_code_is_taken(work: Path) -> None:
    """VE-02: no tests are no failure, and observers need not know pytest to see that."""
    events: list[Event] = []
    await run(work, "pytest -q no_tests_here || exit 5", "false", events=events)

    told = [event.to_dict() for event in events if event.type == "command_run"]
    assert [(each["passed"], each["note"]) for each in told] == [
        (True, "there are no tests"),
        (False, ""),
    ]


async def test_checks_that_ran_overcome_that_they_could_not(work: Path) -> None:
    """EM-04: what fails from here on is a first failure of its own."""
    assert (await run(work, "false"))["origin"] is None
    assert "origin" not in await run(work / "gone", "true")


async def test_what_checks_said_is_on_record_bounded_and_masked(work: Path) -> None:
    """VE-10: in the verification, which the result holds, and in events."""
    key = "ghp_abcdefghijklmnopqrstuvwxyz"
    events: list[Event] = []
    line = f"echo BEGIN {key}; yes filler | head -n 9000; echo END; test -e"
    update = await run(work, f"{line} .", f"{line} gone", events=events)

    told = [event.to_dict()["output"] for event in events if event.type == "command_run"]
    ended = update["verification"].to_dict()
    assert [(each["outcome"], each["exit_code"]) for each in ended["checks"]] == [
        ("passed", 0),
        ("failed", 1),
    ]
    assert [each["output"] for each in ended["checks"]] == told
    for said in told:
        assert said.startswith("BEGIN [key]\nfiller\n")
        assert said.endswith("filler\nEND")
        assert 7_000 < len(said) <= 8_000
