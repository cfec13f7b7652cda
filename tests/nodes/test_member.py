"""A member carries out its one phase in a worktree, and reports what became of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import GREEN, a_context, a_phase, a_savepoint, a_task, settings, taken

from daruma.nodes.member import build_member_state, member
from daruma.state import plan as phases
from daruma.state.channels import State
from daruma.state.errors import CutOff, DarumaError, HoldLost, StorageUnavailable
from daruma.state.events import Event
from daruma.state.plan import Assignment, Report
from daruma.state.settings import Settings
from daruma.tools.context import Context
from daruma.tools.team import Expert

PHASE = a_phase("a", "z", expert="developer", instructions="Do a well.")
GIVEN = Assignment(
    task=a_task("team_collab", review=True), phase=PHASE, plan_id="plan", number=2, of=3
)


def make(folder: str, name: str) -> None:
    Path(folder, name).touch()


def names(folder: str | None) -> set[str]:
    return {path.name for path in Path(folder or "").iterdir()}


def carrying(
    said: str = "Done.", seen: list[tuple[State, Settings]] | None = None, **closed: Any
) -> Context:
    """A context whose members' machine closes its phase like that."""

    async def carry_out(state: State, given: Settings, /) -> State:
        (seen if seen is not None else []).append((state, given))
        assert state.plan is not None
        if state.task and state.task.workspace:
            make(state.task.workspace, "made")
        plan = phases.close(state.plan, "a", **({"outcome": "completed", "answer": said} | closed))
        return replace(
            state, plan=plan, steps=taken("think", phase="a"), messages=[AIMessage(said)]
        )

    return replace(a_context(), carry_out=carry_out)


async def reported(context: Context, given: Assignment = GIVEN) -> Report:
    found = (await member(given, context))["reports"]
    assert isinstance(found, Report)
    return found


@pytest.fixture
def placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Assignment:
    """An assignment with a workspace that was kept before the phase."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "own").touch()
    snapshots = a_context().snapshots(str(tmp_path / "ws"))
    assert snapshots is not None
    taken_now = snapshots.take("savepoint 1/a", by="work", fresh=True).snapshot.id
    task = replace(GIVEN.task, workspace=str(tmp_path / "ws"))
    return replace(GIVEN, task=task, snapshot=taken_now)


async def test_it_starts_with_its_phase_alone() -> None:
    """PL-06: nothing of it waits, nobody reviews it again; it is told its part by its expert."""
    state = build_member_state(replace(GIVEN, known="Done before, z: Z"), None, None)

    assert state.plan is not None
    assert state.task is not None
    assert [(p.id, p.status, p.depends_on) for p in state.plan.phases] == [("a", "running", ())]
    assert (state.plan.current, state.plan.id, state.plan.goal) == ("a", "plan", "Do it")
    assert (state.task.review, state.task.workspace) == (False, None)
    assert (state.task.expert, state.task.role) == ("developer", "")
    (message,) = state.messages
    assert message.text == "Phase 2 of 3: A\n\nDo a well.\n\nDone before, z: Z"
    assert message.id == "plan:begin:a"
    assert state.savepoints == []
    expert = Expert(name="developer", about="all", prompt="You write code.")
    task = build_member_state(GIVEN, expert, None).task
    assert task is not None
    assert (task.expert, task.role) == ("developer", "You write code.")


async def test_it_reports_its_closed_phase_and_its_steps() -> None:
    """BU-03: with the dependencies that the plan has, and what it said."""
    report = await reported(carrying("A is there.", verification=GREEN))

    assert (report.phase.status, report.phase.outcome) == ("completed", "completed")
    assert (report.phase.depends_on, report.phase.answer) == (("z",), "A is there.")
    assert report.phase.verification == GREEN
    assert report.steps == tuple(taken("think", phase="a"))
    assert (report.snapshot, report.drawn_from, report.notes) == (None, None, ())


async def test_it_works_in_a_worktree_of_its_own(placed: Assignment) -> None:
    """PL-06: which is a state to go back to, and whose last state is reported."""
    seen: list[tuple[State, Settings]] = []
    report = await reported(carrying(seen=seen), placed)

    ((state, _),) = seen
    assert state.task is not None
    folder = state.task.workspace or ""
    assert names(folder) == {"own", "made"}
    assert names(placed.task.workspace) == {"own"}
    (start,) = state.savepoints
    expected = a_savepoint("1/a", workspace=folder, snapshot=report.drawn_from, at=start.at)
    assert start == expected
    snapshots = a_context().snapshots(folder)
    assert snapshots is not None
    assert report.drawn_from is not None
    changed = snapshots.changes(report.drawn_from, report.snapshot)
    assert [(each.path, each.what) for each in changed] == [("made", "added")]


async def test_a_member_that_ran_again_began_where_it_began_before(placed: Assignment) -> None:
    """DU-01: what a killed run did in the worktree is its work too."""
    first = await reported(carrying(), placed)
    again = await reported(carrying(), placed)

    assert again.drawn_from == first.drawn_from
    assert again.notes == ()


async def test_without_a_snapshot_there_is_no_worktree(placed: Assignment) -> None:
    """MO-06: nobody works in the workspace itself."""
    seen: list[tuple[State, Settings]] = []
    report = await reported(carrying(seen=seen), replace(placed, snapshot=None))

    assert seen == []
    assert report.phase.status == "failed"
    assert report.phase.failure is not None
    assert report.phase.failure.code == "workspace_conflict"
    assert "rollback.snapshots" in report.phase.failure.message


async def test_its_settings_are_its_experts() -> None:
    """PL-06: what the template says."""
    seen: list[tuple[State, Settings]] = []
    await reported(carrying(seen=seen))

    ((state, given),) = seen
    assert given.team == settings().team
    assert state.task is not None
    assert state.task.role


async def test_its_end_is_told(placed: Assignment) -> None:
    """PL-04: also where it never began."""
    events: list[Event] = []
    context = replace(carrying(), emit=events.append)

    await member(GIVEN, context)
    await member(replace(placed, snapshot=None), context)

    ends = [event.to_dict() for event in events if event.type == "member_completed"]
    assert [(e["phase_id"], e["expert"], e["outcome"]) for e in ends] == [
        ("a", "developer", "completed"),
        ("a", "developer", "failed"),
    ]


async def test_what_is_wrong_with_the_request_has_failed() -> None:
    """Such as a team whose file is gone."""

    async def refuse(state: State, given: Settings, /) -> State:
        del state, given
        raise DarumaError("not so")

    report = await reported(replace(a_context(), carry_out=refuse))

    assert report.phase.failure is not None
    assert (report.phase.failure.code, report.phase.failure.node) == ("bad_request", "member")


@pytest.mark.parametrize("cut_off", [StorageUnavailable("gone"), HoldLost("t")])
async def test_a_member_that_is_cut_off_from_its_storage_has_not_failed(cut_off: CutOff) -> None:
    """DU-04: nothing is reported; its phase goes on when the database is back."""
    told: list[Event] = []

    async def carry_out(_: State, __: Settings, /) -> State:
        raise cut_off

    with pytest.raises(type(cut_off)):
        await member(GIVEN, replace(a_context(events=told), carry_out=carry_out))

    assert told == []


async def test_a_member_that_loses_its_plan_is_a_bug() -> None:
    """The machine never does."""

    async def lose(state: State, given: Settings, /) -> State:
        del given
        return replace(state, plan=None)

    with pytest.raises(LookupError):
        await member(GIVEN, replace(a_context(), carry_out=lose))
