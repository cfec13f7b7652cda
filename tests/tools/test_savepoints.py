"""A savepoint names a snapshot of the workspace, or says why there is none."""

from pathlib import Path

import pytest
from tests.parts import a_context, a_savepoint, a_state, a_task, settings

from daruma.state.events import Event
from daruma.tools.rollback import OFF, Written, start_of, write_savepoint


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


async def test_it_names_a_snapshot_and_is_told(ws: Path) -> None:
    """RO-07: whose, of what, when, and with what note."""
    events: list[Event] = []
    context = a_context(events=events)
    task = a_task(workspace=str(ws))

    written = await write_savepoint(task, "done", context, phase_id="a", note="as it is", undo="s0")

    (savepoint,) = written.savepoints
    snapshots = context.snapshots(str(ws))
    assert snapshots is not None
    (snapshot,) = snapshots.kept()
    assert (snapshot.label, snapshot.by) == ("savepoint 1/a/done", "work")
    assert savepoint == a_savepoint(
        "1/a/done", workspace=str(ws), snapshot=snapshot.id, note="as it is", undo="s0", at=100.0
    )
    assert [event.to_dict()["savepoint_id"] for event in events] == ["1/a/done"]
    assert written.missing == ""


async def test_it_says_what_others_changed(ws: Path) -> None:
    """Intake tells of that."""
    context, task = a_context(), a_task(workspace=str(ws))
    await write_savepoint(task, "task", context, by="others")
    (ws / "theirs").touch()

    written = await write_savepoint(task, "task", context, by="others")

    assert [each.path for each in written.changes] == ["theirs"]


async def test_only_a_tasks_start_reads_the_ignore_rules_anew(ws: Path) -> None:
    """What the work writes into them hides nothing."""
    context, task = a_context(), a_task(workspace=str(ws))
    snapshots = context.snapshots(str(ws))
    assert snapshots is not None
    await write_savepoint(task, "task", context)
    (ws / ".gitignore").write_text("hidden\n")
    (ws / "hidden").touch()

    phase = (await write_savepoint(task, "phase", context, phase_id="a")).savepoints[0]
    (ws / "hidden").write_text("changed\n")
    seen = snapshots.changes(phase.snapshot or "")
    fresh = (await write_savepoint(task, "task", context)).savepoints[0]
    (ws / "hidden").write_text("changed again\n")

    assert [each.path for each in seen] == ["hidden"]
    assert snapshots.changes(fresh.snapshot or "") == ()


async def test_without_snapshots_it_says_so(ws: Path) -> None:
    """The work goes on."""
    off = a_context(given=settings(rollback={"snapshots": False}))

    written = await write_savepoint(a_task(workspace=str(ws)), "phase", off, note="also")

    assert written.savepoints[0].snapshot is None
    assert written.savepoints[0].note == f"{OFF}; also"
    assert written.missing == f"{OFF}; also"


async def test_a_workspace_that_is_gone_is_said(ws: Path) -> None:
    """In the words of what can not be taken."""
    gone = a_task(workspace=str(ws / "gone"))

    (savepoint,) = (await write_savepoint(gone, "phase", a_context())).savepoints

    assert savepoint.snapshot is None
    assert "gone" in savepoint.note


async def test_without_a_workspace_there_is_none() -> None:
    """Nor without a task."""
    assert await write_savepoint(a_task(), "task", a_context()) == Written([])
    assert await write_savepoint(None, "task", a_context()) == Written([])


def test_a_phase_starts_from_its_newest_savepoint() -> None:
    """Of this task, not of one before."""
    kept = [a_savepoint("1/a", snapshot="old"), a_savepoint("1/a", snapshot="new")]
    state = a_state(savepoints=[*kept, a_savepoint("2/a"), a_savepoint("1/a/done")])

    assert start_of(state, "a") == kept[1]
    assert start_of(state, "b") is None
