"""A step is recorded for the task and the phase that are at hand."""

from tests.parts import a_phase, a_plan, a_state

from daruma.state.budget import record_step
from daruma.state.channels import State


def test_a_step_belongs_to_its_task_and_phase() -> None:
    """BU-03: by these its cost is counted."""
    state = a_state(plan=a_plan(a_phase("a"), current="a"))

    (step,) = record_step(state, "think", at=5.0, seconds=2.0, ok=False, signature="s")

    assert (step.kind, step.task_id, step.phase_id) == ("think", "t/1", "a")
    assert (step.at, step.seconds, step.ok, step.signature) == (5.0, 2.0, False, "s")


def test_before_a_phase_there_is_none() -> None:
    """Planning belongs to no phase."""
    (step,) = record_step(a_state(), "plan", at=0.0)
    (lost,) = record_step(State(), "plan", at=0.0)

    assert step.phase_id is None
    assert lost.task_id == ""
