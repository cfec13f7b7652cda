"""Checks are those of the workspace, the settings, and the phase at hand; each is run once."""

from pathlib import Path

import pytest
from tests.parts import a_context, a_phase, a_plan, a_state, a_task, settings

from daruma.state.events import Event
from daruma.tools.errors import ToolError
from daruma.tools.verification import checked, declared

DECLARING = settings(verification={"commands": ["true", "test -e ok"]})


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in which nothing is recognised; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def test_the_current_phase_declares_its_own() -> None:
    """VE-02: behind those of the settings; not those of other phases."""
    plan = a_plan(
        a_phase("a", validation_command="a"), a_phase("b", validation_command="b"), current="b"
    )
    context = a_context(given=DECLARING)

    assert declared(a_state(plan=plan), context) == ("true", "test -e ok", "b")
    assert declared(a_state(), context) == ("true", "test -e ok")


async def test_all_are_run_and_told(ws: Path) -> None:
    """VE-06 and RO-04: each run is an event, and each once."""
    events: list[Event] = []
    plan = a_plan(a_phase("a", validation_command="true"), current="a")
    state = a_state(task=a_task(workspace=str(ws)), plan=plan)

    found = await checked(state, a_context(given=DECLARING, events=events))

    assert [(check.command, check.passed) for check in found.checks] == [
        ("true", True),
        ("test -e ok", False),
    ]
    assert [event.type for event in events] == [
        "verification_started",
        "command_run",
        "command_run",
    ]


async def test_what_they_change_can_be_undone(ws: Path) -> None:
    """RO-07: a look before and one after."""
    context = a_context(given=settings(verification={"commands": ["touch made"]}))
    snapshots = context.snapshots(str(ws))
    assert snapshots is not None

    await checked(a_state(task=a_task(workspace=str(ws))), context)

    before, after = snapshots.kept()
    assert [(each.label, each.opens) for each in (before, after)] == [
        ("before verification", True),
        ("after verification", False),
    ]
    assert [each.path for each in snapshots.changes(before.id, after.id)] == ["made"]


async def test_without_a_workspace_there_is_nothing_to_verify() -> None:
    """That passes, and says so."""
    found = await checked(a_state(), a_context(given=DECLARING))

    assert found.passed
    assert found.note == "nothing to verify: the task has no workspace"


async def test_without_checks_there_is_nothing_to_verify(ws: Path) -> None:
    """VE-02: that passes, and says so."""
    events: list[Event] = []
    found = await checked(a_state(task=a_task(workspace=str(ws))), a_context(events=events))

    assert found.passed
    assert "no checks are known" in found.note
    assert [event.type for event in events] == ["verification_started"]


async def test_a_workspace_that_is_gone_is_an_error(ws: Path) -> None:
    """Nothing is told as begun."""
    events: list[Event] = []
    with pytest.raises(ToolError):
        await checked(a_state(task=a_task(workspace=str(ws / "gone"))), a_context(given=DECLARING))

    assert events == []
