"""Replies that name no question."""

from typing import Any

import pytest
from tests.state.test_inbox import CHOICE, PLAN, approvals

from daruma.graph.studio.inbox import Sent, named
from daruma.state.interrupts import ReplyRefused, inbox_of

ID, OTHER = "a" * 32, "b" * 32
APPROVE = {"decisions": [{"type": "approve"}]}
OURS = {"decisions": [{"approval_id": "a", "digest": "d", "decision": "approve"}]}
BUDGET = {**CHOICE, "amounts": ["usd"], "id": "t/1:task:budget:0"}
AGAIN = {**BUDGET, "id": "t/1:task:budget:1"}
AFTER, BEFORE = Sent(at=6.0), Sent(at=4.0)


def asked(question: dict[str, Any]) -> dict[str, Any]:
    rest = {"id": "q", "spec_review_id": "r", "deadline": None, "asked_at": 5.0}
    return {**rest, **question, **inbox_of(question)}


@pytest.mark.parametrize(
    ("question", "reply", "sent"),
    [
        (PLAN, {"decision": "confirm"}, AFTER),
        (PLAN, {"decision": "confirm", "spec_review_id": "r"}, BEFORE),
        (CHOICE, "left", AFTER),
        (CHOICE, {"answer": "left"}, AFTER),
        (BUDGET, "usd 5", AFTER),
        (AGAIN, "usd 5", Sent(at=6.0, seen=True)),
        (approvals(), APPROVE, AFTER),
        (approvals(), APPROVE, Sent(at=6.0, seen=True, approved_before=True)),
        (approvals(), OURS, Sent(at=None, approved_before=True)),
    ],
)
def test_a_reply_goes_to_the_one_question(question: Any, reply: Any, sent: Sent) -> None:
    """It can mean no other, or it names what it means."""
    assert list(named(reply, {ID: asked(question)}, sent)) == [ID]


@pytest.mark.parametrize(
    ("question", "reply", "sent", "why"),
    [
        (PLAN, {"decision": "confirm"}, BEFORE, "sent before"),
        (PLAN, {"decision": "confirm"}, Sent(at=None), "sent before"),
        (PLAN, {"decision": "confirm", "spec_review_id": "s"}, BEFORE, "not 's'"),
        (PLAN, {"answer": "yes"}, AFTER, "has the form"),
        (CHOICE, "up", AFTER, "one of"),
        (BUDGET, "usd 5", BEFORE, "sent before"),
        (AGAIN, "usd 5", AFTER, "which question it answers"),
        (approvals(), "yes", AFTER, "has the form"),
        (approvals(), APPROVE, BEFORE, "sent before"),
        (approvals(), APPROVE, Sent(at=6.0, approved_before=True), "which it means"),
        (approvals(digest="new"), OURS, AFTER, "digest"),
    ],
)
def test_a_reply_that_may_mean_another_is_refused(
    question: Any, reply: Any, sent: Sent, why: str
) -> None:
    """What was shown is what runs: a stale yes is none to what is asked now."""
    with pytest.raises(ReplyRefused, match=why):
        named(reply, {ID: asked(question)}, sent)


@pytest.mark.parametrize("pending", [{}, {ID: asked(PLAN), OTHER: asked(PLAN)}])
def test_it_needs_exactly_one_question(pending: dict[str, Any]) -> None:
    """Of two, nobody can say which is meant."""
    with pytest.raises(ReplyRefused, match=r"open"):
        named({"decision": "confirm"}, pending, AFTER)


def test_replies_by_id_are_read_too() -> None:
    """Decisions of an inbox become ours; an id that is not open stays, for the door to refuse."""
    replies = named({ID: APPROVE, OTHER: "x"}, {ID: asked(approvals())}, BEFORE)

    assert replies == {ID: OURS, OTHER: "x"}
