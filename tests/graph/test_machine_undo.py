"""The graph puts its workspace back: a task, a phase, a checkpoint, and back again (RO-07)."""

from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_task, settings
from tests.scripted_runs import Run, call, calls, phases, say

from daruma.graph.history import UndoRefused
from daruma.state.errors import WorkspaceBusy
from daruma.state.mode import Mode
from daruma.tools.files.workspace import workspace_locked
from daruma.tools.snapshots.outcome import Restored, RestoreRefused

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def creating(name: str) -> dict[str, Any]:
    return calls(call("str_replace_editor", command="create", path=name, file_text=name))


SCRIPT = {
    "plan": [phases({"id": "p1", "title": "One"}, {"id": "p2", "title": "Two"})],
    "main": [creating("one"), say("Done."), creating("two"), say("Done.")],
}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def run(ws: Path) -> Run:
    """A thread whose phases made the files ``one`` and ``two``."""
    unchecked = settings(verification={"enabled": False}, spec_review={"enabled": False})
    done = Run(SCRIPT, settings=unchecked).ask(mode="plan_exec", workspace=str(ws))
    assert done.result.status == "completed"
    return done


def files(ws: Path) -> set[str]:
    return {path.name for path in ws.iterdir()}


def test_savepoints_name_the_states_of_a_thread(run: Run) -> None:
    """RO-03: before the task, before and after each phase, each with its snapshot."""
    kept = run.graph.savepoints(CONFIG)

    assert [each.id for each in kept] == ["1", "1/p1", "1/p1/done", "1/p2", "1/p2/done"]
    assert all(each.snapshot for each in kept)


@pytest.mark.parametrize(("to", "left"), [(None, set()), ("1/p1/done", {"one"}), ("1/p2", {"one"})])
def test_files_are_put_back_to_a_savepoint(
    run: Run, ws: Path, to: str | None, left: set[str]
) -> None:
    """And the state of the thread stays as it is."""
    before = run.snapshot.config

    restored = run.graph.undo(CONFIG, to=to)

    assert files(ws) == left
    assert restored.exact
    assert run.snapshot.config == before


@pytest.mark.parametrize("later", ["direct_chat", "plan_exec"])
def test_an_undo_keeps_out_of_a_workspace_that_a_run_works_in(
    run: Run, ws: Path, tmp_path: Path, later: Mode
) -> None:
    """Of the workspace whose files it changes, not of that which the newest task has (DU-03)."""
    (tmp_path / "other").mkdir()
    newest = a_task(later, id="t/2", workspace=str(tmp_path / "other"))
    run.graph.update_state(CONFIG, {"task": newest}, as_node="finish")

    with workspace_locked(str(ws)), pytest.raises(WorkspaceBusy):
        run.graph.undo(CONFIG, to="1/p1")

    assert files(ws) == {"one", "two"}


def test_an_undo_is_undone(run: Run, ws: Path) -> None:
    """By the snapshot that it took first."""
    restored = run.graph.undo(CONFIG)

    run.graph.undo(CONFIG, to=restored.before)

    assert files(ws) == {"one", "two"}


def test_who_travels_back_brings_the_files_along(run: Run, ws: Path) -> None:
    """The newest savepoint of the checkpoint counts."""
    past = next(
        each for each in run.graph.get_state_history(CONFIG)
        if each.values.get("plan") and each.values["plan"].current == "p1"
        and each.values["plan"].phase("p1").status == "completed"
    )  # fmt: skip

    run.graph.undo(past.config)

    assert files(ws) == {"one"}


async def test_files_are_put_back_asynchronously(run: Run, ws: Path) -> None:
    """The same, from an event loop."""
    restored = await run.graph.aundo(CONFIG, to="1/p2")

    assert isinstance(restored, Restored)
    assert files(ws) == {"one"}
    assert await run.graph.asavepoints(CONFIG) == run.graph.savepoints(CONFIG)


def test_what_somebody_else_changed_too_is_theirs_to_decide(run: Run, ws: Path) -> None:
    """Refused before anything is changed; kept, or overwritten, as they say."""
    (ws / "one").write_text("mine")

    with pytest.raises(RestoreRefused) as refused:
        run.graph.undo(CONFIG)
    untouched = files(ws)
    kept = run.graph.undo(CONFIG, conflicts="keep")
    left = files(ws)
    run.graph.undo(CONFIG, conflicts="overwrite")

    assert refused.value.conflicts == ("one",)
    assert (untouched, left) == ({"one", "two"}, {"one"})
    assert not kept.exact
    assert files(ws) == set()


def test_the_next_run_tells_that_files_were_put_back(run: Run, ws: Path) -> None:
    """The state says that they are there: the model has to know better."""
    run.graph.undo(CONFIG)
    run.model.script = {**SCRIPT, "main": [*SCRIPT["main"], say("I see.")]}

    run.ask("Go on", mode="react", workspace=str(ws))

    (drifted,) = run.happened("workspace_drifted")
    assert drifted["paths"] == ("one", "two")


def test_a_thread_that_is_not_there_is_refused(run: Run) -> None:
    """Like everywhere, in one line."""
    with pytest.raises(UndoRefused, match="there is no thread 'nobody'"):
        run.graph.undo({"configurable": {"thread_id": "nobody"}})
    with pytest.raises(UndoRefused, match="there is no thread 'nobody'"):
        run.graph.savepoints({"configurable": {"thread_id": "nobody"}})
    with pytest.raises(UndoRefused, match="no checkpoint 'gone' on thread 't'"):
        run.graph.undo({"configurable": {"thread_id": "t", "checkpoint_id": "gone"}})
