"""What members did comes together: in the plan, on record, and in the workspace."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import (
    GREEN,
    a_context,
    a_failure,
    a_phase,
    a_plan,
    a_state,
    a_task,
    no_sandbox,
    settings,
    taken,
)

from daruma.nodes.merge import merge
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.plan import Report
from daruma.tools.snapshots import Snapshots

PLAN = a_plan(a_phase("a", status="running"), a_phase("b", status="running"), a_phase("c", "b"))


def report(id_: str, **changes: Any) -> Report:
    done = {"status": "completed", "outcome": "completed", "answer": f"{id_} is done."}
    given = {key: changes.pop(key) for key in ("steps", "notes", "drawn_from") if key in changes}
    snapshot = changes.pop("snapshot", None)
    return Report(phase=a_phase(id_, **done | changes), snapshot=snapshot, **given)


def state(*reports: Report, plan: Any = PLAN, **task: Any) -> State:
    return a_state(task=a_task("team_collab", **task), plan=plan, reports=reports)


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def worked(ws: Path, id_: str, **files: str) -> Report:
    """The report of a member that made files in a worktree of its own."""
    shared = a_context().snapshots(str(ws))
    assert shared is not None
    folder = ws.parent / f"worktree of {id_}"
    folder.mkdir()
    own = Snapshots(folder, "t", shared.store)
    began = own.take("began", by="work").snapshot.id
    for name, text in files.items():
        (folder / name).write_text(text)
    return report(id_, drawn_from=began, snapshot=own.take("ended", by="work").snapshot.id)


async def test_each_phase_is_closed_as_its_member_did() -> None:
    """PL-05: one that failed fails what depends on it; the others go on."""
    events: list[Event] = []
    failed = report("b", status="failed", outcome="blocked", failure=a_failure(), answer="")

    update = await merge(state(failed, report("a")), a_context(events=events))

    plan: Any = update["plan"]
    assert [p.status for p in plan.phases] == ["completed", "failed", "failed"]
    assert [p.outcome for p in plan.phases] == ["completed", "blocked", "failed"]
    assert plan.phases[1].failure == a_failure()
    assert plan.phases[0].answer == "a is done."
    assert plan.first_failed == "b"
    assert [event.type for event in events] == ["phase_completed", "phase_failed"]


async def test_what_members_said_and_spent_goes_on_record() -> None:
    """BU-03: in the order of the plan, whoever was first."""
    update = await merge(
        state(
            report("b", steps=tuple(taken("verify", phase="b"))),
            report("a", steps=tuple(taken("think", phase="a"))),
        ),
        a_context(),
    )

    (said,) = update["messages"]
    assert said.text == "A: a is done.\n\nB: b is done."
    assert said.id == "t/1/plan-1:merge:a+b"
    assert [step.phase_id for step in update["steps"]] == ["a", "b"]
    assert update["reports"] == ()
    assert (update["failure"], update["origin"]) == (None, None)


async def test_members_that_said_nothing_leave_no_message() -> None:
    """An empty one would end the task with it."""
    assert (await merge(state(report("a", answer="")), a_context()))["messages"] == []


async def test_a_members_notes_stand_at_its_savepoint(ws: Path) -> None:
    """So that they are in the result."""
    given = state(report("a", notes=("one", "two")), workspace=str(ws))

    (savepoint,) = (await merge(given, a_context()))["savepoints"]

    assert (savepoint.id, savepoint.note) == ("1/a/done", "one; two")


async def test_a_conflict_stays_out_and_is_to_be_settled(ws: Path) -> None:
    """PL-06: the first in the plan's order is in the workspace, whoever was first."""
    events: list[Event] = []
    one, two = worked(ws, "a", x="a\n"), worked(ws, "b", x="b\n")

    update = await merge(state(two, one, workspace=str(ws)), a_context(events=events))

    plan: Any = update["plan"]
    assert (ws / "x").read_text() == "a\n"
    assert plan.phases[1].unmerged == (two.drawn_from, two.snapshot)
    assert plan.phases[-1].settles == "b"
    merged = [event.to_dict() for event in events if event.type == "merge_completed"]
    assert [(e["phase_id"], e["paths"], len(e["conflicts"])) for e in merged] == [
        ("a", ("x",), 0),
        ("b", (), 1),
    ]


async def test_what_was_settled_and_conflicts_again_has_failed(ws: Path) -> None:
    """It would be settled for ever."""
    plan = a_plan(a_phase("a", status="running"), a_phase("b", status="running", settles="a"))
    one, two = worked(ws, "a", x="a\n"), worked(ws, "b", x="b\n")
    two = Report(
        phase=a_phase("b", status="completed", outcome="completed", settles="a"),
        drawn_from=two.drawn_from,
        snapshot=two.snapshot,
    )

    after: Any = (await merge(state(one, two, plan=plan, workspace=str(ws)), a_context()))["plan"]

    assert len(after.phases) == 2
    assert (after.phases[1].status, after.phases[1].failure.code) == (
        "failed",
        "workspace_conflict",
    )


async def test_work_that_can_not_be_had_has_failed(ws: Path) -> None:
    """A completed phase whose work is not there would be a lie."""
    gone = report("a", drawn_from="gone", snapshot="gone")

    plan: Any = (await merge(state(gone, workspace=str(ws)), a_context()))["plan"]

    assert (plan.phases[0].status, plan.phases[0].outcome) == ("failed", "failed")
    assert plan.phases[0].failure.node == "merge"


RED_TOGETHER = settings(verification={"commands": ["test ! -e a -o ! -e b"]})


async def test_checks_are_run_on_the_whole(ws: Path) -> None:
    """What is right on each side may be wrong together."""
    given = state(worked(ws, "a", a=""), worked(ws, "b", b=""), workspace=str(ws), verify=True)

    update = await merge(given, a_context(given=RED_TOGETHER))

    plan: Any = update["plan"]
    assert plan.phases[-1].settles == "b"
    assert plan.phases[-2].depends_on == ("b", "b-merge")
    assert update["verification"] is not None
    assert not update["verification"].passed


async def test_a_merge_that_is_done_again_comes_to_the_same(ws: Path) -> None:
    """DU-01: its checks too, if it was killed while they ran."""
    given = state(worked(ws, "a", a=""), worked(ws, "b", b=""), workspace=str(ws), verify=True)

    first = await merge(given, a_context(given=RED_TOGETHER))
    again = await merge(given, a_context(given=RED_TOGETHER))

    assert again["plan"] == first["plan"]


@pytest.mark.parametrize(("verify", "files"), [(False, ("a", "b")), (True, ("a", "a"))])
async def test_no_checks_are_run_on_what_did_not_meet(
    ws: Path, verify: bool, files: tuple[str, str]
) -> None:
    """Or where the task is not verified at all."""
    events: list[Event] = []
    one, two = (worked(ws, id_, **{name: id_}) for id_, name in zip("ab", files, strict=True))
    given = state(one, two, workspace=str(ws), verify=verify)

    await merge(given, a_context(given=RED_TOGETHER, events=events))

    assert "verification_started" not in [event.type for event in events]


async def test_checks_that_can_not_be_run_are_no_reason_to_fail(ws: Path) -> None:
    """But the result says so."""
    given = state(worked(ws, "a", a=""), worked(ws, "b", b=""), workspace=str(ws), verify=True)
    events: list[Event] = []
    context = replace(a_context(given=RED_TOGETHER, events=events), open_sandbox=no_sandbox)

    update = await merge(given, context)

    verification: Any = update["verification"]
    told = [event for event in events if event.type == "verification_completed"]
    assert len(told) == 1
    assert "could not be run" in verification.note


async def test_work_with_a_rubric_that_can_not_be_checked_has_failed(ws: Path) -> None:
    """VE-11: nobody has judged it, whatever the reason."""
    plan = a_plan(a_phase("a", status="running"), a_phase("b", status="running"))
    reports = (worked(ws, "a", a=""), worked(ws, "b", b=""))
    given = state(*reports, plan=plan, workspace=str(ws), verify=True, rubric=("is good",))

    update = await merge(given, replace(a_context(given=RED_TOGETHER), open_sandbox=no_sandbox))

    failure: Any = update["failure"]
    assert (failure.code, failure.node) == ("verification_failed", "merge")


async def test_the_verification_is_that_of_who_was_merged_last() -> None:
    """Not of one that failed."""
    failed = report("b", status="failed", outcome="failed", failure=a_failure())

    update = await merge(state(report("a", verification=GREEN), failed), a_context())

    assert update["verification"] == GREEN


async def test_without_a_plan_it_is_a_bug() -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        await merge(State(), a_context())
