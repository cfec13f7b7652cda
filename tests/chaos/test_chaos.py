"""A short piece of the chaos runs: nothing is ever called a success that is none.

``python -m tests.chaos`` runs all of it, in minutes, and prints the published table.
"""

from collections import Counter
from typing import Any

import pytest
from tests.chaos.faults import ANY, CALLS, drawn, faulty
from tests.chaos.measuring import SYSTEMS, measure
from tests.chaos.outcome import judged
from tests.openai_answers import Reply

SOME = range(24)
RATE = 0.2
FLOOR = 23 / 24
"""Of these tasks all but one may be expected; without faults all are done."""


@pytest.mark.long
@pytest.mark.parametrize("streaming", [False, True])
def test_under_faults_tasks_are_completed_and_none_wrongly(streaming: bool) -> None:
    """MO-08: at one request and one tool in five failing, in both ways."""
    tally = measure("Daruma", RATE, SOME, streaming=streaming)

    assert tally.verdicts["wrong"] == tally.verdicts["raised"] == 0, tally.reasons
    assert tally.share >= FLOOR, tally.reasons


@pytest.mark.long
def test_without_faults_both_systems_do_every_task() -> None:
    """What is lost at other rates is lost to faults."""
    tallies = [measure(system, 0, SOME, streaming=False) for system in SYSTEMS]

    assert [tally.share for tally in tallies] == [1, 1]


def test_faults_come_at_their_rate_and_in_all_kinds() -> None:
    """Drawn by task and number: the same for each system, and those of a low rate at a higher."""
    draws = {n: drawn(RATE, "request", n) for n in range(3000)}
    call = Reply(calls=[{"name": "look_up", "arguments": {"key": "T1-abc"}}])
    answers = Counter(str(faulty(call, draw)) for draw in draws.values() if draw)

    assert 0.18 < answers.total() / len(draws) < 0.22
    assert {n for n in draws if drawn(0.1, "request", n)} < {n for n in draws if draws[n]}
    assert len(answers) >= len(ANY) + len(CALLS)


@pytest.mark.parametrize(
    ("answer", "verdict"), [("The sum is 5.", "right"), ("The sum", "wrong"), ("", "wrong")]
)
def test_a_success_without_the_right_answer_is_wrong(answer: str, verdict: Any) -> None:
    """Blank and half answers too."""
    assert judged(answer, "The sum is 5.").verdict == verdict
