"""The record of steps only grows, in whatever batches it is written."""

from hypothesis import given
from hypothesis import strategies as st
from tests.parts import taken

from daruma.state.steps import Step, append_steps

STEPS = st.lists(st.sampled_from(taken("plan", "think", "verify", "reflect", "recover")))


@given(STEPS, st.lists(STEPS, max_size=4), st.lists(STEPS, max_size=4))
def test_steps_are_appended_whatever_the_batches(
    start: list[Step], first: list[list[Step]], second: list[list[Step]]
) -> None:
    """Nothing is lost, changed or counted twice by a replay."""
    at_once = append_steps(start, first + second)

    assert append_steps(append_steps(start, first), second) == at_once
    assert at_once == [*start, *(step for write in first + second for step in write)]
