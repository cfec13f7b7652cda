"""A failed phase is undone only if its validation says so."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_context, a_phase, a_plan, a_task, no_sandbox, settings

from daruma.nodes.rollback import rollback
from daruma.state.channels import State
from daruma.state.events import Event

OPENED, CLOSED, FAILED = (f"phase_rollback_{how}" for how in ("started", "completed", "failed"))
KEPT = "savepoint_written"


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in which a phase has left something."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "left").touch()
    return tmp_path / "work"


def state(work: Path | None, validation: str | None, command: str | None) -> State:
    phase = a_phase("a", status="failed", validation_command=validation, rollback_command=command)
    task = a_task("plan_exec", workspace=str(work) if work else None)
    return State(task=task, plan=a_plan(phase, current="a"))


@pytest.mark.parametrize(
    ("validation", "undone"), [(None, True), ("false", True), ("true", False), ("sleep 9", True)]
)
async def test_it_is_undone_unless_the_validation_passes(
    work: Path, validation: str | None, undone: bool
) -> None:
    """RO-02: without a validation command the rollback is run; one that hangs has not passed."""
    given = settings(rollback={"default_timeout": 0.3})
    update = await rollback(state(work, validation, "rm left"), a_context(given=given))

    assert update["failure"] is None
    assert (work / "left").exists() is not undone


async def test_a_savepoint_follows(work: Path) -> None:
    """RO-02: what comes next builds on what is there now.

    RO-01: without a rollback the validation is run and told, and nothing is undone.
    """
    events: list[Event] = []
    update = await rollback(state(work, "false", None), a_context(events=events))

    (savepoint,) = update["savepoints"]
    assert (savepoint.id, savepoint.when, savepoint.phase_id) == ("1/a/done", "done", "a")
    assert savepoint.snapshot is not None
    assert [event.type for event in events] == ["command_run", KEPT]
    assert (work / "left").exists()
    undone = await rollback(state(work, None, "rm left"), a_context())
    assert [each.id for each in undone["savepoints"]] == ["1/a/done"]
    assert undone["savepoints"][0].snapshot not in (None, savepoint.snapshot)


@pytest.mark.parametrize(
    ("command", "said"),
    [("echo no way >&2; exit 3", "(exit 3): no way"), ("sleep 9", "(timed out)")],
)
async def test_a_failed_rollback_is_a_failure(work: Path, command: str, said: str) -> None:
    """RO-03 and RO-04: with what the command said."""
    given = settings(rollback={"default_timeout": 0.3})
    failure: Any = (await rollback(state(work, None, command), a_context(given=given)))["failure"]

    assert failure.code == "rollback_failed"
    assert failure.message.startswith("the rollback of phase 'a' failed")
    assert said in failure.message


async def test_a_rollback_that_can_not_be_run_has_failed(work: Path) -> None:
    """RO-03: a workspace that is gone, or none at all, was not undone."""
    gone, none = state(work / "gone", None, "true"), state(None, None, "true")

    for given in (gone, none):
        failure: Any = (await rollback(given, a_context()))["failure"]
        assert failure.code == "rollback_failed"


@pytest.mark.parametrize(
    ("validation", "command", "told"),
    [
        ("true", "true", ["command_run", KEPT]),
        ("false", "true", ["command_run", OPENED, "command_run", CLOSED, KEPT]),
        (None, "false", [OPENED, "command_run", FAILED]),
        (" ", "true", [OPENED, "command_run", CLOSED, KEPT]),
    ],
)
async def test_what_is_run_is_told(
    work: Path, validation: str | None, command: str, told: list[str]
) -> None:
    """RO-04 and RO-05: a start for each end; a validation that can not be run has not passed."""
    events: list[Event] = []
    await rollback(state(work, validation, command), a_context(events=events))

    assert [event.type for event in events] == told


@pytest.mark.parametrize("error", [OSError("no such device"), ZeroDivisionError("planted")])
async def test_what_was_begun_is_told_as_ended(work: Path, error: Exception) -> None:
    """PL-04: whatever was raised; a bug goes on to the error handler."""

    async def broken() -> Any:
        raise error

    events: list[Event] = []
    context = replace(a_context(events=events), open_sandbox=broken)
    expected = isinstance(error, OSError)

    with nullcontext() if expected else pytest.raises(ZeroDivisionError):
        failure: Any = (await rollback(state(work, None, "rm left"), context))["failure"]
        assert failure.code == "rollback_failed"

    assert [event.type for event in events] == [OPENED, FAILED]


async def test_without_a_failed_phase_it_is_a_bug(work: Path) -> None:
    """The table never leads here then."""
    running = a_plan(a_phase("a", status="running", rollback_command="true"), current="a")
    with pytest.raises(LookupError):
        await rollback(replace(state(work, None, None), plan=running), a_context())


async def test_a_rollback_without_its_sandbox_has_failed(work: Path) -> None:
    """SA-01: what is required is not there, so nothing is run."""
    context = replace(a_context(), open_sandbox=no_sandbox)
    failure: Any = (await rollback(state(work, None, "rm left"), context))["failure"]

    assert failure.code == "rollback_failed"
    assert failure.message.endswith("not here")
    assert (work / "left").exists()


SECRET = "sk-proj-abcdefgh12345678"
LONG = f"echo BEGIN {SECRET}; yes filler-line | head -n 9000; echo END >&2; exit"


@pytest.mark.parametrize(
    ("validation", "rollback_command", "outcomes"),
    [
        (f"{LONG} 1", f"{LONG} 0", ["failed", "passed"]),
        (f"{LONG} 0", f"{LONG} 0", ["passed", None]),
        (f"{LONG} 1", f"{LONG} 3", ["failed", "failed"]),
        (None, f"{LONG} 0", [None, "passed"]),
    ],
)
async def test_what_its_commands_said_is_on_record(
    validation: str | None, rollback_command: str, outcomes: list[str | None], work: Path
) -> None:
    """VE-10: in the plan, which the result holds, and in events; both ends, keys masked."""
    events: list[Event] = []
    given = state(work, validation, rollback_command)
    update = await rollback(given, a_context(events=events))

    assert update["plan"] is not None
    (phase,) = update["plan"].to_dict()["phases"]
    runs = [phase.get("validation_run"), phase.get("rollback_run")]
    assert [run and run["outcome"] for run in runs] == outcomes
    told = [event.to_dict()["output"] for event in events if event.type == "command_run"]
    for said in (*(run["output"] for run in runs if run), *told):
        assert said.startswith("BEGIN [key]\nfiller-line\n")
        assert said.endswith("filler-line\nEND")
        assert SECRET not in said
        assert 7_000 < len(said) <= 8_000
