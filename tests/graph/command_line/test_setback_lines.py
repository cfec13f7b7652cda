"""Setbacks are told while they happen: what failed, what is done about it, what became of that."""

from typing import get_args

import pytest

from daruma.graph.command_line.event_lines import audit_lines, lines_of
from daruma.graph.command_line.output import Line
from daruma.state.events import (
    Event,
    ModelAttemptFailed,
    RecoveryChosen,
    RecoveryCompleted,
    RecoveryStarted,
)
from daruma.state.recovery import Carried
from daruma.state.steps import Audit
from daruma.state.usage import Attempt, Failover

FAILED = ModelAttemptFailed(
    node="main", model="a", attempt=2, error="slow down", then="again", status=429, wait=2.0
)
LAST = ModelAttemptFailed(node="main", model="a", attempt=3, error="reset", then="gave up")


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (FAILED, [Line("bad", "a, request 2 (429): slow down", "again in 2.0 s")]),
        (LAST, [Line("bad", "a, request 3: reset", "gave up")]),
        (
            RecoveryStarted(
                code="loop_detected",
                message="search, 3 times with the same result",
                progress={"percent": 25, "reasoning": "1 of 4 phases"},
            ),
            [
                Line("head", "Recovery"),
                Line("bad", "search, 3 times with the same result", "loop_detected"),
                Line("note", "25 % done: 1 of 4 phases"),
            ],
        ),
        (
            RecoveryChosen(
                strategy="alternative-tool",
                reasoning="It is down.",
                confidence=0.85,
                by="model",
                tool_name="brave_search",
                parameters={"query": "x"},
            ),
            [
                Line(
                    "note", "alternative-tool: brave_search x", "confidence 0.85, chosen by model"
                ),
                Line("words", "It is down."),
            ],
        ),
        (
            RecoveryCompleted(strategy="retry", carried="denied"),
            [Line("bad", "retry: denied")],
        ),
    ],
)
def test_each_setback_has_its_line(event: Event, lines: list[Line]) -> None:
    """RE-09 and FA-04: what a person has to know of it, and no more."""
    assert lines_of(event.to_dict()) == lines


def test_a_failure_without_progress_is_told_without() -> None:
    """RE-09: nothing is made up."""
    assert len(lines_of(RecoveryStarted(code="timeout", message="slow").to_dict())) == 2


@pytest.mark.parametrize("carried", get_args(Carried))
def test_every_outcome_of_a_recovery_has_words(carried: str) -> None:
    """None of them is told as a bare code, and only what was done is a success."""
    (line,) = lines_of(RecoveryCompleted(strategy="retry", carried=carried).to_dict())

    assert line.text not in ("retry", "retry: ")
    assert (line.mark == "ok") is (carried in ("executed", "approved", "instructed", "answered"))


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ("b", "b answered; requests that failed: 2 of a, 1 of b"),
        ("", "no model answered; requests that failed: 2 of a, 1 of b"),
    ],
)
def test_a_failover_is_summed_up(used: str, said: str) -> None:
    """TL-17: what it took to get an answer."""
    attempts = tuple(Attempt(model=m, error="503", then="again") for m in ("a", "a", "b"))
    failover = Failover(requested="a", used=used, attempts=attempts)
    audit = Audit(message_id="m", failover=failover)

    assert audit_lines(audit.to_dict()) == [Line("note", said)]
