"""A plan that can not be carried out can not be built."""

from dataclasses import replace

import pytest
from tests.parts import a_failure, a_phase, a_plan

from daruma.state.plan import Phase, PlanRefused


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        ((), "the plan has no phases"),
        ((a_phase("a"), a_phase("b"), a_phase("a")), "phase ids are used more than once: a"),
        ((a_phase("a", "x", "b"), a_phase("b")), "phase 'a' depends on unknown phases: x"),
        ((a_phase("a", "a"),), "phases depend on each other: a -> a"),
        (
            (a_phase("a", "c"), a_phase("b", "a"), a_phase("c", "b")),
            "phases depend on each other: a -> b -> c -> a",
        ),
    ],
)
def test_a_plan_that_can_not_be_run_is_refused(phases: tuple[Phase, ...], said: str) -> None:
    """PL-01: no phases, an id twice, an unknown dependency and a cycle, each named."""
    with pytest.raises(PlanRefused) as refused:
        a_plan(*phases)

    assert sorted(str(refused.value)) == sorted(said)


def test_a_change_is_checked_like_a_new_plan() -> None:
    """Records are validated whenever they are built, so a replacement can not break the rules."""
    plan = a_plan(a_phase("a"))

    with pytest.raises(PlanRefused, match="unknown phases: z"):
        replace(plan, phases=(a_phase("a", "z"),))


def test_a_phase_is_found_by_its_id() -> None:
    """What is not there is None, and so is the phase of no id."""
    plan = a_plan(a_phase("a"), a_phase("b"))

    assert plan.phase("b") is plan.phases[1]
    assert plan.phase("c") is None
    assert plan.phase(None) is None


def test_commands_that_are_not_set_are_absent() -> None:
    """PL-01: both commands are null by default, and then not in ``to_dict()``."""
    assert a_phase("a", title="A").to_dict() == {
        "id": "a",
        "title": "A",
        "instructions": "",
        "depends_on": [],
        "status": "pending",
    }


def test_what_is_set_is_shown() -> None:
    """Commands, expert, outcome and the failure's message stand in ``to_dict()``."""
    phase = a_phase(
        "b",
        "a",
        expert="e",
        validation_command="v",
        rollback_command="r",
        status="failed",
        outcome="gave_up_after_reflections",
        failure=a_failure(message="it is red"),
    )

    shown = phase.to_dict()

    assert shown["depends_on"] == ["a"]
    assert shown["expert"] == "e"
    assert (shown["validation_command"], shown["rollback_command"]) == ("v", "r")
    assert (shown["outcome"], shown["error"]) == ("gave_up_after_reflections", "it is red")


def test_a_plan_shows_its_id_goal_and_phases() -> None:
    """PL-01: what reviewers and events see."""
    plan = a_plan(a_phase("a"))

    assert plan.to_dict() == {
        "id": "t/1/plan-1",
        "goal": "Do it",
        "phases": [plan.phases[0].to_dict()],
    }
