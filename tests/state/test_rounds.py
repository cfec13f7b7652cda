"""Rounds are read from the step record alone."""

from dataclasses import replace
from typing import Any

import pytest
from tests.parts import taken

from daruma.state.progress import Round, attempt, refused, rounds, since_recovery
from daruma.state.recovery import Carried, Recovered, Strategy
from daruma.state.steps import Step


def think(signature: str = "", saw: str = "", **changes: Any) -> Step:
    return replace(taken("think")[0], signature=signature, saw=saw, **changes)


def test_a_round_is_closed_by_the_step_after_it() -> None:
    """What is asked for now has not come to anything yet."""
    steps = [think("a"), think("b", "1")]

    assert rounds(steps, think("c", "2")) == [Round("a", "1"), Round("b", "2")]


def test_other_kinds_of_steps_are_no_rounds() -> None:
    """A repair or a verification lies between the calls and what they came to."""
    steps = [think("a"), *taken("repair", "verify", "recover")]

    assert rounds(steps, think("b", "1")) == [Round("a", "1")]


def test_what_failed_or_was_refused_is_no_round() -> None:
    """A model call that failed asks for nothing, and refused calls come to nothing."""
    steps = [think("a"), think("", "1", ok=False), think("a", "1", ok=False)]

    assert rounds(steps, think("b", "!refused")) == [Round("a", "1")]


@pytest.mark.parametrize(
    ("steps", "was"),
    [
        ([think("a")], False),
        ([think("a"), think("", ok=False)], False),
        ([think("a"), think("a", ok=False)], True),
        ([think("a"), think("a", ok=False), think("", ok=False)], True),
        ([think("a"), think("a", ok=False), think("b")], False),
    ],
)
def test_calls_are_refused_until_others_were_run(steps: list[Step], was: bool) -> None:
    """From then on a loop has to be a new one."""
    assert refused(steps) is was


@pytest.mark.parametrize(
    ("strategy", "carried", "left"),
    [
        *(("escalate", "executed", 3), ("retry", "observed", 3), ("retry", "denied", 3)),
        *(("escalate", "approved", 1), ("retry", "instructed", 1), ("escalate", "answered", 1)),
        *(("retry", "executed", 1), ("alternative-tool", "executed", 3)),
        ("parameter-adjustment", "executed", 3),
    ],
)
def test_a_person_s_word_and_a_retry_begin_an_attempt(
    strategy: Strategy, carried: Carried, left: int
) -> None:
    """After advice a model that goes on the same way is caught at once; a retry is one."""
    recovered = Recovered(code="loop_detected", strategy=strategy, by="model", carried=carried)
    recover = replace(taken("recover")[0], recovery=recovered)

    assert len(attempt([think("a"), recover, think("b")])) == left


def test_a_reflection_begins_an_attempt() -> None:
    """RE-02: the detector is reset between reflection attempts."""
    assert attempt([think("a"), *taken("reflect"), think("b")]) == [think("b")]
    assert since_recovery([think("a"), *taken("recover"), think("b")]) == [think("b")]
