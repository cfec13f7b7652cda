"""What is on record of a recovery: only what was done counts as done."""

import pytest
from tests.parts import a_context

from daruma.state.events import Event
from daruma.state.failure import Failure
from daruma.state.recovery import Carried, RecoveryAction, Strategy
from daruma.tools.recovery.action import closed_on_bug, recovered

LOOP = Failure(code="loop_detected", node="main", message="a loop", tool="shout")
BOTH = ("shout", "whisper")


@pytest.mark.parametrize(
    ("strategy", "carried", "tool", "hides"),
    [
        ("retry", "executed", "shout", ""),
        ("retry", "approved", "shout", ""),
        ("retry", "denied", "", ""),
        ("alternative-tool", "executed", "", "shout"),
        ("alternative-tool", "denied", "", ""),
        ("alternative-tool", "observed", "", ""),
        ("alternative-tool", "instructed", "", ""),
    ],
)
def test_only_what_was_done_tries_or_hides_a_tool(
    strategy: Strategy, carried: Carried, tool: str, hides: str
) -> None:
    """RE-07 counts by it, and the next request is made by it."""
    action = RecoveryAction(strategy=strategy, confidence=0.7, by="rule")
    found = recovered(action, LOOP, carried, BOTH)

    assert (found.tool, found.hides) == (tool, hides)
    assert (found.code, found.strategy) == ("loop_detected", strategy)
    assert (found.by, found.carried, found.confidence) == ("rule", carried, 0.7)


def test_a_bug_closes_what_was_opened_and_goes_on() -> None:
    """PL-04; a bug is never caught for good."""
    events: list[Event] = []
    with pytest.raises(ZeroDivisionError), closed_on_bug(a_context(events=events)):
        raise ZeroDivisionError

    assert [event.to_dict()["carried"] for event in events] == ["failed"]
