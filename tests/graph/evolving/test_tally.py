"""Outcomes are counted, and a reason is one line that gives nothing away."""

import logging

import pytest

from daruma.graph.learning import Counts, NotSampled, NotTaken, Tally


class Mute(Exception):
    """Can not be told."""

    def __str__(self) -> str:
        raise ValueError


def test_each_end_is_counted_as_what_it_was() -> None:
    """EV-02: learned from, skipped, dropped or failed."""
    tally = Tally()

    for error in (None, None, NotSampled(), NotTaken("many wait"), ValueError()):
        tally.end("t/1", error)

    assert tally.counts == Counts(learned=2, skipped=1, dropped=1, failed=1)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("a\nb sk-abcdefghijkl"), "ValueError: a b [key]"),
        (ValueError("x" * 999), f"ValueError: {'x' * 300}"),
        (Mute(), "Mute: it can not be told"),
    ],
)
def test_a_reason_is_one_short_line_without_keys(
    error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a store raises."""
    with caplog.at_level(logging.WARNING, "daruma.evolution"):
        Tally().end("t/1", error)

    assert caplog.messages == [f"nothing was learned from task 't/1': {told}"]
