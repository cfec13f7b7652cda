"""Running the checks that say whether the work is done, and files that others changed (RO-07)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_context, a_phase, a_plan, a_state, a_task, settings

from daruma.state.channels import State
from daruma.state.events import Event, WorkspaceDrifted
from daruma.state.savepoint import MOST, Drifted
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.rollback import drift, drift_note, drift_update
from daruma.tools.snapshots import Change, ChangedBy, Snapshots, store_of
from daruma.tools.verification import declared_commands, run_all_checks

# --- Checks are those of the workspace, the settings, and the phase at hand; each is run once.

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

    assert declared_commands(a_state(plan=plan), context) == ("true", "test -e ok", "b")
    assert declared_commands(a_state(), context) == ("true", "test -e ok")


async def test_all_are_run_and_told(ws: Path) -> None:
    """VE-06 and RO-04: each run is an event, and each once."""
    events: list[Event] = []
    plan = a_plan(a_phase("a", validation_command="true"), current="a")
    state = a_state(task=a_task(workspace=str(ws)), plan=plan)

    found = await run_all_checks(state, a_context(given=DECLARING, events=events))

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

    await run_all_checks(a_state(task=a_task(workspace=str(ws))), context)

    before, after = snapshots.kept()
    assert [(each.label, each.opens) for each in (before, after)] == [
        ("before verification", True),
        ("after verification", False),
    ]
    assert [each.path for each in snapshots.changes(before.id, after.id)] == ["made"]


async def test_without_checks_there_is_nothing_to_verify(ws: Path) -> None:
    """VE-02: that passes, and says so."""
    events: list[Event] = []
    found = await run_all_checks(a_state(task=a_task(workspace=str(ws))), a_context(events=events))

    assert found.passed
    assert "no checks are known" in found.note
    nowhere = await run_all_checks(a_state(), a_context(given=DECLARING))
    assert nowhere.passed
    assert nowhere.note == "nothing to verify: the task has no workspace"
    assert [event.type for event in events] == ["verification_started"]


async def test_a_workspace_that_is_gone_is_an_error(ws: Path) -> None:
    """Nothing is told as begun."""
    events: list[Event] = []
    with pytest.raises(ToolError):
        await run_all_checks(
            a_state(task=a_task(workspace=str(ws / "gone"))), a_context(given=DECLARING)
        )

    assert events == []


# --- What somebody else changed is found, told, and not forgotten before it is on record.


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task whose workspace holds one file."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "own").touch()
    return a_task(workspace=str(tmp_path / "ws"))


def snapshots(task: Task, context: Context) -> Snapshots:
    found = context.snapshots(task.workspace)
    assert found is not None
    return found


def make(task: Task, name: str) -> None:
    Path(task.workspace or "", name).touch()


def changed(*paths: str) -> list[Change]:
    return [Change(path, "changed") for path in paths]


LOOKS: dict[str, tuple[str, list[tuple[str, ...]]]] = {
    "never looked before": ("look", [()]),
    "something new": ("others +theirs look", [("theirs",)]),
    "a finding that was lost": ("others +a look +b look", [("a",), ("a", "b")]),
    "work in between": ("others +a look work +b look", [("a",), ("b",)]),
    "work that was cut off": ("begin +work look +a look look", [(), ("a",), ("a",)]),
    "put back by an undo": ("others +work work undo look look", [("work",), ("work",)]),
}


@pytest.mark.parametrize("name", LOOKS)
async def test_what_others_changed_is_found_and_told(name: str, task: Task) -> None:
    """RO-07: the paths, with how many there are; a run may have kept nothing of an earlier look.

    Work went on with what it was told of, and what it did, also if cut off, is not of others. Of
    what an undo put back the thread does not know until a run has kept that.
    """
    steps, found = LOOKS[name]
    events: list[Event] = []
    context = a_context(events=events)
    kept = snapshots(task, context)
    looks: list[Drifted | None] = []
    for step in steps.split():
        if step == "look":
            looks.append(await drift(task, context))
        elif step == "undo":
            kept.restore(kept.kept()[0].id)
        elif step.startswith("+"):
            make(task, step[1:])
        else:
            by: ChangedBy = "others" if step == "others" else "work"
            kept.take(step, by=by, opens=step == "begin")

    assert [each and each.paths for each in looks] == [paths or None for paths in found]
    assert events == [WorkspaceDrifted(paths=each, total=len(each)) for each in found if each]
    assert name != "never looked before" or kept.kept() == ()


async def test_what_is_known_is_not_told_again(task: Task) -> None:
    """But what was known of another task is."""
    context = a_context()
    snapshots(task, context).take("savepoint 1", by="others")
    make(task, "theirs")
    found = await drift(task, context)

    assert found is not None
    assert await drift(task, context, found) is None
    assert await drift(task, context, replace(found, task_id="t/0")) == found


@pytest.mark.parametrize("changes", [{"expert": "developer"}, {"workspace": None}])
async def test_there_is_no_look(task: Task, changes: dict[str, Any]) -> None:
    """A member's worktree is nobody else's."""
    context = a_context()
    snapshots(task, context).take("savepoint 1", by="others")
    make(task, "theirs")

    assert await drift(replace(task, **changes), context) is None
    assert await drift(None, context) is None
    assert len(snapshots(task, context).kept()) == 1


async def test_without_snapshots_there_is_no_look(task: Task) -> None:
    """The settings say so."""
    context = a_context(given=settings(rollback={"snapshots": False}))
    snapshots(task, a_context()).take("savepoint 1", by="others")
    make(task, "theirs")

    assert await drift(task, context) is None


async def test_a_damaged_store_is_no_drift(task: Task) -> None:
    """Whoever needs a snapshot will say that there is none."""
    store = store_of(Path(task.workspace or ""))
    store.parent.mkdir(parents=True)
    store.write_bytes(b"no database" * 1000)

    assert await drift(task, a_context()) is None


def test_caches_are_no_drift() -> None:
    """They come and go by themselves."""
    events: list[Event] = []
    context = a_context(events=events)

    found = drift_update(a_task(), changed(".pytest_cache/x", "__pycache__/a.pyc"), context)

    assert found is None
    assert events == []


def test_of_many_paths_the_first_are_kept() -> None:
    """What is on record is bounded; the event says how many there are."""
    events: list[Event] = []
    many = [f"{n:03}" for n in range(MOST + 5)]

    found = drift_update(a_task(), changed(*many), a_context(events=events))

    assert found == Drifted(task_id="t/1", paths=tuple(many[:MOST]))
    assert events == [WorkspaceDrifted(paths=tuple(many[:MOST]), total=MOST + 5)]


def test_the_model_is_told_of_its_own_task_only() -> None:
    """In the words of a note, behind all that was said."""
    found = Drifted(task_id="t/1", paths=("a", "b"))

    (note,) = drift_note(State(task=a_task(), drifted=found))

    assert "a, b" in note.text
    assert drift_note(State(task=a_task(), drifted=replace(found, task_id="t/0"))) == []
    assert drift_note(State(task=a_task())) == []
