"""A failed phase is undone by its command, by a snapshot, or by both, and as if never cut short."""

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
from daruma.tools.rollback import RollbackFailed, RolledBack, roll_back, validate
from daruma.tools.snapshots.outcome import SnapshotUnavailable
from daruma.tools.snapshots.snapshots import Snapshots


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


async def test_a_snapshot_puts_back_what_the_phase_made(ws: Path) -> None:
    """RO-06: and what was undone can be had again."""
    phase, state = begun(ws, rollback="snapshot")

    undone = await roll_back(phase, state, a_context())

    assert undone.exact is True
    assert not (ws / "left").exists()
    assert undone.undo is not None
    snapshots(ws).restore(undone.undo)
    assert (ws / "left").exists()


async def test_a_fork_has_an_undo_of_its_own(ws: Path) -> None:
    """RO-07: another try that took as many steps is another one."""
    phase, state = begun(ws, rollback="snapshot", at=1.0)
    await roll_back(phase, state, a_context())
    (ws / "second").write_text("second\n")

    undone = await roll_back(phase, replace(state, steps=taken("think", at=2.0)), a_context())

    assert undone.undo is not None
    snapshots(ws).restore(undone.undo)
    assert (ws / "second").exists()


async def test_a_fork_runs_its_command_on_its_own_files(ws: Path) -> None:
    """It is not taken for a try that was killed, and put back to that one's start."""
    phase, state = begun(ws, rollback_command="rm -f left", at=1.0)
    await roll_back(phase, state, a_context())
    (ws / "second").write_text("second\n")

    await roll_back(phase, replace(state, steps=taken("think", at=2.0)), a_context())

    assert (ws / "second").exists()


async def test_a_command_that_was_cut_short_begins_anew(ws: Path) -> None:
    """DU-01: from the files that it had found."""
    phase, state = begun(ws, rollback_command="mv left undone")
    await roll_back(phase, state, a_context())

    await roll_back(phase, state, a_context())

    assert (ws / "undone").exists()


@pytest.mark.parametrize("snapshot", ["none", "no savepoint", "off"])
async def test_without_a_snapshot_nothing_is_put_back(ws: Path, snapshot: str) -> None:
    """RO-03: and why there is none is said."""
    phase, state = begun(ws, rollback="snapshot")
    given = settings(rollback={"snapshots": snapshot != "off"})
    kept = [replace(each, snapshot=None, note="the disk was full") for each in state.savepoints]
    state = replace(state, savepoints=kept if snapshot == "none" else [])

    with pytest.raises(SnapshotUnavailable, match="no snapshot from before phase 'a'") as raised:
        await roll_back(phase, state, a_context(given=given))

    assert ("the disk was full" in str(raised.value)) is (snapshot == "none")
    assert (ws / "left").exists()


@pytest.mark.parametrize(
    ("command", "exact", "left"), [("rm left", True, ()), ("true", False, ("left",))]
)
async def test_a_command_is_compared_with_the_snapshot(
    ws: Path, command: str, exact: bool, left: tuple[str, ...]
) -> None:
    """What it left is told; it says itself whether that is a failure."""
    phase, state = begun(ws, rollback_command=command)

    undone = await roll_back(phase, state, a_context())

    assert (undone.exact, undone.left) == (exact, left)
    assert undone.undo is not None


async def test_without_snapshots_nobody_can_tell(ws: Path) -> None:
    """Then nothing is claimed."""
    phase, state = begun(ws, rollback_command="true")
    off = a_context(given=settings(rollback={"snapshots": False}))

    undone = await roll_back(phase, state, off)
    assert undone == RolledBack(run=undone.run)
    assert (await roll_back(phase, replace(state, savepoints=[]), a_context())).exact is None


async def test_a_failed_command_is_not_followed_by_the_snapshot(ws: Path) -> None:
    """RO-03: a person decides; what was there before it can be had again."""
    phase, state = begun(ws, rollback_command="rm left; exit 3", rollback="snapshot")

    with pytest.raises(RollbackFailed, match=r"exit 3") as raised:
        await roll_back(phase, state, a_context())

    assert (ws / "own").exists()
    assert raised.value.undo is not None
    snapshots(ws).restore(raised.value.undo)
    assert (ws / "left").exists()


async def test_both_are_done(ws: Path) -> None:
    """RO-04: the command first, for what no snapshot holds."""
    events: list[Event] = []
    phase, state = begun(ws, rollback_command="test -e left", rollback="snapshot")

    undone = await roll_back(phase, state, a_context(events=events))

    assert undone.exact is True
    assert [event.type for event in events] == ["command_run"]
    assert not (ws / "left").exists()


@pytest.mark.parametrize(
    ("command", "valid"), [("true", True), ("false", False), (None, False), ("rm left", True)]
)
async def test_a_phase_is_still_valid_if_its_command_says_so(
    ws: Path, command: str | None, valid: bool
) -> None:
    """RO-02: without one it is not."""
    phase, state = begun(ws, validation_command=command)

    run = await validate(phase, state, a_context())
    assert (run is not None and run.passed) is valid


async def test_one_that_can_not_be_run_has_not_passed(ws: Path) -> None:
    """Neither for want of a sandbox nor of a workspace."""
    phase, state = begun(ws, validation_command="true")
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
