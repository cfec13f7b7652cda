"""Savepoints, and undoing a failed phase."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import (
    a_context,
    a_phase,
    a_plan,
    a_savepoint,
    a_state,
    a_task,
    no_sandbox,
    settings,
    taken,
)

from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.plan import Phase
from daruma.tools.rollback import (
    OFF,
    RollbackFailed,
    RolledBack,
    Written,
    roll_back,
    start_of,
    validate,
    write_savepoint,
)
from daruma.tools.snapshots import Snapshots, SnapshotUnavailable

# --- A savepoint names a snapshot of the workspace, or says why there is none.


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


# --- A failed phase is undone by its command, by a snapshot, or by both, and as if never cut
# short.


@pytest.fixture
def ws_rolling_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "own").write_text("own\n")
    return tmp_path / "ws"


def snapshots(ws: Path) -> Snapshots:
    found = a_context().snapshots(str(ws))
    assert found is not None
    return found


def begun(ws: Path, *, steps: int = 1, at: float = 0.0, **changes: Any) -> tuple[Phase, State]:
    """A failed phase whose savepoint was taken just now, and a file that it has made since."""
    phase = a_phase("a", status="failed", **changes)
    start = snapshots(ws).take("savepoint 1/a", by="work").snapshot.id
    (ws / "left").write_text("left\n")
    state = a_state(
        task=a_task(workspace=str(ws)),
        plan=a_plan(phase, current="a"),
        savepoints=[a_savepoint("1/a", workspace=str(ws), snapshot=start)],
        steps=taken("think", at=at) * steps,
    )
    return phase, state


async def test_a_snapshot_puts_back_what_the_phase_made(ws_rolling_back: Path) -> None:
    """RO-06: and what was undone can be had again."""
    phase, state = begun(ws_rolling_back, rollback="snapshot")

    undone = await roll_back(phase, state, a_context())

    assert undone.exact is True
    assert not (ws_rolling_back / "left").exists()
    assert undone.undo is not None
    snapshots(ws_rolling_back).restore(undone.undo)
    assert (ws_rolling_back / "left").exists()


async def test_a_fork_has_an_undo_of_its_own(ws_rolling_back: Path) -> None:
    """RO-07: another try that took as many steps is another one."""
    phase, state = begun(ws_rolling_back, rollback="snapshot", at=1.0)
    await roll_back(phase, state, a_context())
    (ws_rolling_back / "second").write_text("second\n")

    undone = await roll_back(phase, replace(state, steps=taken("think", at=2.0)), a_context())

    assert undone.undo is not None
    snapshots(ws_rolling_back).restore(undone.undo)
    assert (ws_rolling_back / "second").exists()


async def test_a_fork_runs_its_command_on_its_own_files(ws_rolling_back: Path) -> None:
    """It is not taken for a try that was killed, and put back to that one's start."""
    phase, state = begun(ws_rolling_back, rollback_command="rm -f left", at=1.0)
    await roll_back(phase, state, a_context())
    (ws_rolling_back / "second").write_text("second\n")

    await roll_back(phase, replace(state, steps=taken("think", at=2.0)), a_context())

    assert (ws_rolling_back / "second").exists()


async def test_a_command_that_was_cut_short_begins_anew(ws_rolling_back: Path) -> None:
    """DU-01: from the files that it had found."""
    phase, state = begun(ws_rolling_back, rollback_command="mv left undone")
    await roll_back(phase, state, a_context())

    await roll_back(phase, state, a_context())

    assert (ws_rolling_back / "undone").exists()


@pytest.mark.parametrize("snapshot", ["none", "no savepoint", "off"])
async def test_without_a_snapshot_nothing_is_put_back(ws_rolling_back: Path, snapshot: str) -> None:
    """RO-03: and why there is none is said."""
    phase, state = begun(ws_rolling_back, rollback="snapshot")
    given = settings(rollback={"snapshots": snapshot != "off"})
    kept = [replace(each, snapshot=None, note="the disk was full") for each in state.savepoints]
    state = replace(state, savepoints=kept if snapshot == "none" else [])

    with pytest.raises(SnapshotUnavailable, match="no snapshot from before phase 'a'") as raised:
        await roll_back(phase, state, a_context(given=given))

    assert ("the disk was full" in str(raised.value)) is (snapshot == "none")
    assert (ws_rolling_back / "left").exists()


@pytest.mark.parametrize(
    ("command", "exact", "left"), [("rm left", True, ()), ("true", False, ("left",))]
)
async def test_a_command_is_compared_with_the_snapshot(
    ws_rolling_back: Path, command: str, exact: bool, left: tuple[str, ...]
) -> None:
    """What it left is told; it says itself whether that is a failure."""
    phase, state = begun(ws_rolling_back, rollback_command=command)

    undone = await roll_back(phase, state, a_context())

    assert (undone.exact, undone.left) == (exact, left)
    assert undone.undo is not None


async def test_without_snapshots_nobody_can_tell(ws_rolling_back: Path) -> None:
    """Then nothing is claimed."""
    phase, state = begun(ws_rolling_back, rollback_command="true")
    off = a_context(given=settings(rollback={"snapshots": False}))

    undone = await roll_back(phase, state, off)
    assert undone == RolledBack(run=undone.run)
    assert (await roll_back(phase, replace(state, savepoints=[]), a_context())).exact is None


async def test_a_failed_command_is_not_followed_by_the_snapshot(ws_rolling_back: Path) -> None:
    """RO-03: a person decides; what was there before it can be had again."""
    phase, state = begun(ws_rolling_back, rollback_command="rm left; exit 3", rollback="snapshot")

    with pytest.raises(RollbackFailed, match=r"exit 3") as raised:
        await roll_back(phase, state, a_context())

    assert (ws_rolling_back / "own").exists()
    assert raised.value.undo is not None
    snapshots(ws_rolling_back).restore(raised.value.undo)
    assert (ws_rolling_back / "left").exists()


async def test_both_are_done(ws_rolling_back: Path) -> None:
    """RO-04: the command first, for what no snapshot holds."""
    events: list[Event] = []
    phase, state = begun(ws_rolling_back, rollback_command="test -e left", rollback="snapshot")

    undone = await roll_back(phase, state, a_context(events=events))

    assert undone.exact is True
    assert [event.type for event in events] == ["command_run"]
    assert not (ws_rolling_back / "left").exists()


@pytest.mark.parametrize(
    ("command", "valid"), [("true", True), ("false", False), (None, False), ("rm left", True)]
)
async def test_a_phase_is_still_valid_if_its_command_says_so(
    ws_rolling_back: Path, command: str | None, valid: bool
) -> None:
    """RO-02: without one it is not."""
    phase, state = begun(ws_rolling_back, validation_command=command)

    run = await validate(phase, state, a_context())
    assert (run is not None and run.passed) is valid


async def test_one_that_can_not_be_run_has_not_passed(ws_rolling_back: Path) -> None:
    """Neither for want of a sandbox nor of a workspace."""
    phase, state = begun(ws_rolling_back, validation_command="true")
    nowhere = replace(state, task=a_task())

    for at, context in (
        (state, replace(a_context(), open_sandbox=no_sandbox)),
        (nowhere, a_context()),
    ):
        run = await validate(phase, at, context)
        assert run is not None
        assert (run.passed, run.exit_code, run.note[:8]) == (False, None, "not run:")


@pytest.mark.parametrize(
    ("undone", "note"),
    [
        (RolledBack(), ""),
        (RolledBack(exact=True, undo="s1"), ""),
        (RolledBack(exact=False, left=("a", "b"), undo="s1"), "a, b (`daruma undo THREAD --to s1`"),
    ],
)
def test_only_what_is_not_as_it_was_is_noted(undone: RolledBack, note: str) -> None:
    """With the way back."""
    assert (note in undone.note) if note else undone.note == ""
