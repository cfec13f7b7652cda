"""Which state an undo goes back to, and what is said where it can not be had."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import StateSnapshot
from tests.parts import a_savepoint, a_task

from daruma.graph.history import Place, UndoRefused, place_of, savepoints_of, snapshots_of, undone
from daruma.state.errors import WorkspaceBusy
from daruma.state.savepoint import Savepoint
from daruma.tools.files.workspace import workspace_locked

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def past(**values: Any) -> StateSnapshot:
    """A thread that is there, with these values."""
    return StateSnapshot(
        values=values, next=(), config=CONFIG, metadata=None, created_at="2026-01-02T12:00:00",
        parent_config=None, tasks=(), interrupts=(),
    )  # fmt: skip


def on(ws: Path, *savepoints: Savepoint, task: str = "t/1", **changes: Any) -> StateSnapshot:
    """A thread whose newest task works in ``ws``, with these savepoints of it."""
    kept = [replace(each, workspace=str(ws), **changes) for each in savepoints]
    return past(task=a_task(id=task, workspace=str(ws)), savepoints=kept)


def taken(ws: Path, thread: str = "t") -> str:
    return snapshots_of(str(ws), thread).take("here", by="work").snapshot.id


def refusal(asked: StateSnapshot, to: str | None = None, *, travelled: bool = False) -> str:
    with pytest.raises(UndoRefused) as refused:
        place_of(asked, to, travelled=travelled)
    return str(refused.value)


def test_the_start_of_the_newest_task_is_meant(ws: Path) -> None:
    """Where nothing is named: that of the task at hand, not the newest savepoint."""
    first, second, phase = taken(ws), taken(ws), taken(ws)
    asked = on(
        ws,
        a_savepoint("1", snapshot=first),
        a_savepoint("2", snapshot=second),
        a_savepoint("2/p1", snapshot=phase),
        task="t/2",
    )

    place = place_of(asked, None)

    assert (place.snapshot, place.savepoint and place.savepoint.id) == (second, "2")


def test_at_a_checkpoint_its_newest_savepoint_is_meant(ws: Path) -> None:
    """RO-07: who travels back can bring the files along."""
    task, phase = taken(ws), taken(ws)
    asked = on(ws, a_savepoint("1", snapshot=task), a_savepoint("1/p1", snapshot=phase))

    assert place_of(asked, None, travelled=True).snapshot == phase


def test_a_savepoint_that_was_taken_again_is_its_last(ws: Path) -> None:
    """A task that was tried again began anew from there."""
    asked = on(ws, a_savepoint("1", snapshot=taken(ws)), a_savepoint("1", snapshot=taken(ws)))

    place = place_of(asked, "1")

    assert place.snapshot == asked.values["savepoints"][1].snapshot
    assert savepoints_of(asked) == (asked.values["savepoints"][1],)


def test_a_snapshot_can_be_named_itself(ws: Path) -> None:
    """An undo is undone by the one from before it, which no savepoint names."""
    snapshot = taken(ws)

    assert place_of(on(ws), snapshot) == Place("t", str(ws), snapshot)


REFUSED: dict[str, tuple[Callable[[Path], StateSnapshot], str | None, str]] = {
    "no thread": (lambda _: past()._replace(created_at=None), None, "there is no thread 't'"),
    "no workspace": (lambda _: past(task=a_task()), None, "has no workspace: name a savepoint"),
    "no task": (lambda _: past(), None, "has no workspace"),
    "never taken": (on, None, "when task t/1 began; this thread has none"),
    "unknown": (
        lambda ws: on(ws, a_savepoint("1"), a_savepoint("1/p1")),
        "1/p2",
        "'1/p2' is on this machine; did you mean '1/p1'? there are: 1, 1/p1",
    ),
    "no snapshot": (
        lambda ws: on(ws, a_savepoint("1", snapshot=None, note="the disk was full")),
        None,
        "savepoint '1' can not be gone back to: the disk was full",
    ),
    "elsewhere": (
        lambda ws: on(ws, a_savepoint("1", snapshot="7f")),
        None,
        "snapshot 7f of savepoint '1' is not on this machine",
    ),
    "pruned": (
        lambda ws: on(ws, a_savepoint("1", snapshot="7f")) if taken(ws) else past(),
        None,
        "deleted after rollback.keep_days",
    ),
    "another thread's": (
        lambda ws: on(ws, a_savepoint("1", snapshot=taken(ws, "other"))),
        None,
        "is not on this machine",
    ),
    "folder gone": (
        lambda ws: on(ws / "gone", a_savepoint("1")),
        None,
        "is not there: make the folder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_can_not_be_had_is_refused_in_one_line(ws: Path, name: str) -> None:
    """With what is wrong, and what there is instead."""
    asked, to, said = REFUSED[name]

    refused = refusal(asked(ws), to)

    assert said in refused
    assert "\n" not in refused


def test_looking_for_what_is_not_there_makes_nothing(ws: Path) -> None:
    """A question about another machine's snapshots leaves no empty store behind."""
    refusal(on(ws, a_savepoint("1", snapshot="7f")))

    assert not (ws.parent / "data").exists()


def test_a_checkpoint_before_all_savepoints_says_so(ws: Path) -> None:
    """Rather than take one that came later, or of another folder."""
    asked = on(ws, a_savepoint("1"))
    asked.values["savepoints"][0] = a_savepoint("1", workspace="/other")

    assert "no savepoint had been taken by that checkpoint" in refusal(asked, travelled=True)


def test_a_workspace_of_an_earlier_task_is_not_changed_under_another_run(ws: Path) -> None:
    """What counts is the folder that is put back, not the one of the newest task."""
    earlier = replace(a_savepoint("1", snapshot=taken(ws)), workspace=str(ws))
    asked = past(task=a_task(id="t/2", workspace="/elsewhere"), savepoints=[earlier])

    with workspace_locked(str(ws)), pytest.raises(WorkspaceBusy):
        undone(asked, "1", "refuse")
