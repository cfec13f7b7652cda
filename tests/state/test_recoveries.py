"""What the record of steps says of recoveries."""

from typing import Any

import pytest
from tests.parts import a_call, a_failure, a_phase, a_plan, a_recovery, a_state, taken

from daruma.state.budget import (
    asked_before,
    ended_with,
    hidden_tools,
    outcomes,
    retries,
    retries_of,
)
from daruma.state.steps import Step

HIDING = taken("recover", recovery=a_recovery("alternative-tool", hides="shout"))
RETRYING = taken("recover", recovery=a_recovery("retry", tool="shout"))
ADJUSTING = taken("recover", recovery=a_recovery("parameter-adjustment", tool="shout"))
OTHER = taken("recover", recovery=a_recovery("retry", tool="whisper"))
NO_TOOL = taken("recover", recovery=a_recovery("retry"))
THINK = taken("think")


@pytest.mark.parametrize(
    ("steps", "answered", "hidden"),
    [
        ([], False, False),
        (HIDING, False, True),
        (HIDING + THINK, True, True),
        (HIDING + THINK, False, False),
        (HIDING + THINK + THINK, True, False),
        (HIDING + taken("repair"), False, True),
        (HIDING + RETRYING, False, False),
        (taken("recover", task="t/0", recovery=HIDING[0].recovery), False, False),
    ],
)
def test_a_tool_is_hidden_for_one_answer(steps: list[Step], answered: bool, hidden: bool) -> None:
    """And for the repair of that answer's calls; by the record, so after a resume too."""
    found = hidden_tools(a_state(steps=steps, calls=(a_call(),)), answered=answered)

    assert found == frozenset({"shout"} if hidden else ())


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ([], 0),
        (RETRYING, 1),
        (RETRYING + ADJUSTING, 2),
        (RETRYING + NO_TOOL + ADJUSTING, 2),
        (RETRYING + OTHER, 0),
        (RETRYING + HIDING + RETRYING, 1),
    ],
)
def test_retries_of_a_tool_are_counted_until_another_is_chosen(
    steps: list[Step], count: int
) -> None:
    """RE-07."""
    assert retries_of(a_state(steps=steps), "shout") == count


def test_retries_are_those_of_the_phase() -> None:
    """A new phase waits as short as the first did."""
    steps = [*taken("recover", phase="a", recovery=a_recovery("retry")), *RETRYING]
    plan = a_plan(a_phase("a"), a_phase("b"), current="a")

    assert retries(a_state(steps=steps, plan=plan)) == 1


def test_model_calls_are_those_that_were_made() -> None:
    """What was learned before took none."""
    learned = taken("recover", recovery=a_recovery(by="learned"))

    assert asked_before([*RETRYING, *learned, *taken("recover", "consult", "think")]) == 2


@pytest.mark.parametrize(
    ("later", "worked"),
    [
        (taken("think"), True),
        (taken("think", ok=False), False),
        ([], False),
        (taken("recover", "consult"), False),
        (taken("think") + taken("recover", signature="s"), False),
        (taken("think") + taken("recover", signature="other"), True),
        (taken("think", phase="b"), False),
    ],
)
def test_a_recovery_worked_if_the_failure_did_not_come_again(
    later: list[Step], worked: bool
) -> None:
    """RE-08."""
    first = taken("recover", signature="s", recovery=a_recovery("retry"))

    assert next(each.worked for each in outcomes(first + later)) is worked


@pytest.mark.parametrize("carried", ["denied", "observed"])
def test_what_was_not_done_did_not_work(carried: Any) -> None:
    """Whatever came after it."""
    first = taken("recover", signature="s", recovery=a_recovery("retry", carried=carried))

    assert [each.worked for each in outcomes(first + THINK)] == [False]


def test_a_failure_that_was_left_open_was_not_overcome() -> None:
    """RE-08: the last time is given up without a step; work that went on between is no sign."""
    first = taken("recover", phase="a", signature="s", recovery=a_recovery("retry"))
    steps = [*first, *taken("think", phase="a")]

    assert [each.worked for each in outcomes(steps, {"a": {"s"}})] == [False]
    assert [each.worked for each in outcomes(steps, {"b": {"s"}})] == [True]


def test_what_a_task_ended_with_is_read_off_the_state() -> None:
    """Of a plan, what each phase fell of; else what is open, and what recovery worked on."""
    first, last = a_failure(message="first"), a_failure(message="last")
    plan = a_plan(a_phase("a", failure=first), a_phase("b"), current="b")

    assert ended_with(a_state(origin=first, failure=last)) == {
        None: {first.signature, last.signature}
    }
    assert ended_with(a_state(plan=plan, failure=last)) == {None: set(), "a": {first.signature}}


@pytest.mark.parametrize("carried", ["executed", "approved", "instructed", "answered"])
def test_what_was_done_or_said_in_its_place_may_have_worked(carried: Any) -> None:
    """A person's word counts as the action's."""
    first = taken("consult", signature="s", recovery=a_recovery("retry", carried=carried))

    assert [each.worked for each in outcomes(first + THINK)] == [True]
