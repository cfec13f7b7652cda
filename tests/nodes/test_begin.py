"""The first ready phase begins, with nothing left over from the one before."""

from pathlib import Path

import pytest
from tests.parts import GREEN, a_call, a_context, a_failure, a_phase, a_plan, a_task, settings

from daruma.nodes.begin import begin
from daruma.state.channels import State
from daruma.state.events import Event, MemberStarted, PhaseStarted
from daruma.state.plan import Report

PLAN = a_plan(
    a_phase("a", status="completed", outcome="completed"),
    a_phase("c", "b"),
    a_phase("b", "a", instructions="Do b well."),
)


async def test_the_first_ready_phase_is_begun() -> None:
    """PL-05: not the first of the list; the model is told which of how many it is."""
    events: list[Event] = []
    update = await begin(State(task=a_task(), plan=PLAN), a_context(events=events))

    plan = update["plan"]
    assert plan is not None
    assert plan.current == "b"
    assert [phase.status for phase in plan.phases] == ["completed", "pending", "running"]
    assert update["messages"][0].text == "Phase 3 of 3: B\n\nDo b well."
    assert events == [PhaseStarted(phase_id="b", title="B", number=3, of=3)]


async def test_what_the_phase_before_left_is_cleared() -> None:
    """Its checks must not speak for this one."""
    state = State(
        task=a_task(), plan=PLAN, calls=(a_call(),), verification=GREEN, origin=a_failure()
    )
    update = await begin(state, a_context())

    assert update["calls"] == ()
    assert update["verification"] is None
    assert update["failure"] is None
    assert update["origin"] is None


async def test_in_a_team_all_that_are_ready_begin() -> None:
    """PL-06: the first is the current one; nothing is left of the round before, or said to all."""
    events: list[Event] = []
    plan = a_plan(a_phase("a", expert="e"), a_phase("b"), a_phase("c"), a_phase("d", "a"))
    reports = (Report(phase=a_phase("z")),)
    state = State(task=a_task("team_collab", workspace="/w"), plan=plan, reports=reports)
    two = settings(team={"max_parallel": 2})

    update = await begin(state, a_context(events=events, given=two))

    begun = update["plan"]
    assert begun is not None
    assert begun.current == "a"
    assert [p.status for p in begun.phases] == ["running", "running", "pending", "pending"]
    assert update["reports"] == ()
    assert "messages" not in update
    begun_ones = [each.type for each in events if each.type != "savepoint_written"]
    assert begun_ones == ["phase_started", "member_started"] * 2
    places = [each.workspace for each in events if isinstance(each, MemberStarted)]
    assert [Path(str(each)).name.partition("-")[0] for each in places] == ["a", "b"]
    assert not any(str(each).startswith("/w") for each in places)


async def test_without_a_plan_it_is_a_bug() -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        await begin(State(), a_context())
