"""Which ended tasks are learned from."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.state.lessons import Experience, Instruction, KnownPitfall, Lessons, Tried
from daruma.state.recovery import ChosenBy
from daruma.state.task import Status
from daruma.tools.evolution.reflector import is_sampled

WENT_WELL = Experience(
    task_id="t/1", owner="o", mode="react", status="completed", goal="Do it", at=1.0
)


def named(number: int) -> Experience:
    """The experience of one of many tasks."""
    return replace(WENT_WELL, task_id=f"t{number}/1")


@pytest.mark.parametrize(
    "status", ["failed", "gave_up_after_reflections", "max_steps_exceeded", "blocked", "cancelled"]
)
def test_what_did_not_complete_is_always_learned_from(status: Status) -> None:
    """EV-01: failure always."""
    assert is_sampled(replace(WENT_WELL, status=status), rate=0.0)


def test_of_the_successes_a_part_is() -> None:
    """EV-01: about a tenth at the rate that is the default; all or none at 1 and 0."""
    tasks = [named(number) for number in range(1000)]

    assert 70 <= sum(is_sampled(each, 0.1) for each in tasks) <= 130
    assert all(is_sampled(each, 1.0) for each in tasks)
    assert not any(is_sampled(each, 0.0) for each in tasks)


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_takes_what_a_lower_one_takes(task_id: str, one: float, other: float) -> None:
    """MO-09: the choice is the task's, whoever asks and however often."""
    each = replace(WENT_WELL, task_id=task_id)

    assert is_sampled(each, max(one, other)) or not is_sampled(each, min(one, other))


@pytest.mark.parametrize(
    "lessons",
    [
        Lessons(task_id="t/1", pitfalls=(KnownPitfall(id="p", text="It falls."),)),
        Lessons(
            task_id="t/1", instructions=(Instruction(variant="v", actor="main", place="plan"),)
        ),
    ],
)
def test_what_was_given_lessons_is_always_learned_from(lessons: Lessons) -> None:
    """Whether they help could not be told from failures alone."""
    assert is_sampled(replace(WENT_WELL, lessons=lessons), rate=0.0)


def test_a_note_that_there_were_no_lessons_is_none() -> None:
    """A store that was lost must not have every success looked at."""
    lessons = Lessons(task_id="t/1", note="the store was slow")

    assert not is_sampled(replace(WENT_WELL, lessons=lessons), rate=0.0)


@pytest.mark.parametrize("by", ["learned", "model"])
def test_what_tried_something_against_a_failure_is_always_learned_from(by: ChosenBy) -> None:
    """RE-08: its success speaks for it, as its failure speaks against it."""
    tried = Tried(actor="main", signature="s", strategy="retry", by=by, worked=True)

    assert is_sampled(replace(WENT_WELL, tried=(tried,)), rate=0.0)
