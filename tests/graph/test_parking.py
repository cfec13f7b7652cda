"""Plans that nobody confirmed in time, and replies that come late."""

from typing import Any

import pytest
from langgraph.types import Command, Interrupt, PregelTask, StateSnapshot

from daruma.graph.answers import PARK, overdue, readdressed, stale_ids

CONFIRM = {"decision": "confirm"}


def review(deadline: float | None = 100.0, **more: Any) -> dict[str, Any]:
    return {"type": "spec_review_request", "deadline": deadline, **more}


def thread(**questions: Any) -> StateSnapshot:
    """A thread with these open questions."""
    interrupts = tuple(Interrupt(value=value, id=id_) for id_, value in questions.items())
    task = PregelTask(id="x", name="spec_review", path=(), interrupts=interrupts)
    return StateSnapshot({}, ("spec_review",), {}, None, "now", None, (task,), interrupts)


PARKED = thread(new=review(None, parked=True))


@pytest.mark.parametrize(
    ("questions", "now", "parked"),
    [
        ({"q": review()}, 100.5, {"q": PARK}),
        ({"q": review()}, 100.0, {}),
        ({"q": review(None)}, 1e12, {}),
        ({"q": {"type": "question", "deadline": 1.0}}, 100.5, {}),
        ({"q": "a tool's own"}, 100.5, {}),
        ({}, 100.5, {}),
    ],
)
def test_a_review_is_parked_after_its_deadline(
    questions: dict[str, Any], now: float, parked: dict[str, Any]
) -> None:
    """PL-03: other questions have no such end."""
    assert overdue(thread(**questions), now) == parked


@pytest.mark.parametrize(
    ("given", "snapshot", "stale"),
    [
        (Command(resume={"old": CONFIRM}), PARKED, ["old"]),
        (Command(resume={"new": CONFIRM}), PARKED, []),
        (Command(resume={"old": CONFIRM, "older": CONFIRM}), PARKED, []),
        (Command(resume={"old": CONFIRM}), thread(new=review()), []),
        (Command(resume={"old": CONFIRM}), thread(), []),
        (Command(resume="confirm"), PARKED, []),
        (None, PARKED, []),
        ({"messages": []}, PARKED, []),
    ],
)
def test_a_late_reply_is_one_to_a_question_that_was_parked(
    given: Any, snapshot: StateSnapshot, stale: list[str]
) -> None:
    """Only then it is looked up what became of that."""
    assert [*stale_ids(given, snapshot)] == stale


def test_a_late_reply_goes_to_the_question_as_it_is_asked_now() -> None:
    """PL-03: it is taken up again by a later answer."""
    given: Command[Any] = Command(resume={"old": CONFIRM})

    assert readdressed(given, PARKED, {"old": PARK}).resume == {"new": CONFIRM}


@pytest.mark.parametrize("accepted", [{}, {"old": CONFIRM}])
def test_a_reply_to_what_was_not_parked_stays_as_it_is(accepted: dict[str, Any]) -> None:
    """A plan that a person had rejected is not confirmed by a second reply."""
    given: Command[Any] = Command(resume={"old": CONFIRM})

    assert readdressed(given, PARKED, accepted) is given
