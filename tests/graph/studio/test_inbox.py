"""What an inbox replies, and whom a reply goes to that names no question."""

from typing import Any

import pytest
from tests.state.test_interrupts import CHOICE, PLAN, approvals
from tests.state.test_interrupts import RECOVERY_INBOX as RECOVERY

from daruma.graph.studio.entry import Sent, addressed, from_inbox, is_of_an_inbox
from daruma.state.interrupts import ReplyRefused, inbox_of

# --- Decisions of an inbox, and the replies that they come to.

APPROVE = {"type": "approve"}
NO = {"type": "reject", "message": "too dear"}


def edit(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def asked(question: dict[str, Any]) -> dict[str, Any]:
    return {"spec_review_id": "r", **question, **inbox_of(question)}


@pytest.mark.parametrize(
    ("question", "decision", "reply"),
    [
        (PLAN, APPROVE, {"decision": "confirm", "spec_review_id": "r"}),
        (PLAN, NO, {"decision": "reject", "feedback": "too dear", "spec_review_id": "r"}),
        (
            PLAN,
            edit("plan", goal="Tidy", phases='[{"title": "Do"}]'),
            {
                "decision": "edit",
                "plan": {"goal": "Tidy", "phases": [{"title": "Do"}]},
                "spec_review_id": "r",
            },
        ),
        (RECOVERY, APPROVE, {"decision": "approve"}),
        (RECOVERY, NO, {"decision": "deny", "reason": "too dear"}),
        (
            RECOVERY,
            {"type": "respond", "message": "Wait"},
            {"decision": "instruct", "text": "Wait"},
        ),
        (CHOICE, edit("answer", answer="left"), {"answer": "left"}),
        (CHOICE, {"type": "respond", "message": "right"}, {"answer": "right"}),
    ],
)
def test_a_decision_is_the_reply_of_its_question(question: Any, decision: Any, reply: Any) -> None:
    """Each question has a reply for each decision that it allows."""
    assert from_inbox(asked(question), {"decisions": [decision]}) == reply


@pytest.mark.parametrize(
    ("decision", "rest"),
    [
        (APPROVE, {"decision": "approve"}),
        (NO, {"decision": "deny", "reason": "too dear"}),
        (edit("pay", sum="7"), {"decision": "edit", "args": {"sum": 7}}),
        (edit("pay", sum="seven"), {"decision": "edit", "args": {"sum": "seven"}}),
    ],
)
def test_a_decision_on_a_call_has_its_id_and_digest(decision: Any, rest: Any) -> None:
    """They are those of the question; a number that a form gave as text is one again."""
    reply = from_inbox(asked(approvals()), {"decisions": [decision]})

    assert reply == {"decisions": [{"approval_id": "a", "digest": "d", **rest}]}


@pytest.mark.parametrize(
    ("question", "decisions", "why"),
    [
        (approvals(), [], "0 were given"),
        (approvals(), [APPROVE, APPROVE], "2 were given"),
        (approvals(), [{"type": "approve", "all": True}], "has the form"),
        (approvals(), [{"type": "accept"}], "has the form"),
        (approvals(), [edit("run_command", command="rm -rf /")], "keeps to 'pay'"),
        (approvals(), [{"type": "respond", "message": "hm"}], "approve, edit, reject"),
        (CHOICE, [APPROVE], "edit, respond"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(question: Any, decisions: Any, why: str) -> None:
    """It says what would, and the question stays open."""
    with pytest.raises(ReplyRefused, match=why):
        from_inbox(asked(question), {"decisions": decisions})


@pytest.mark.parametrize(
    ("reply", "is_one"),
    [
        ({"decisions": [APPROVE]}, True),
        ({"decisions": [{"approval_id": "a", "digest": "d", "decision": "approve"}]}, False),
        ({"decision": "confirm"}, False),
        ("yes", False),
    ],
)
def test_an_inbox_is_told_by_its_types(reply: Any, is_one: Any) -> None:
    """Our own replies are none."""
    assert is_of_an_inbox(reply) is is_one


# --- Replies that name no question.

ID, OTHER = "a" * 32, "b" * 32
APPROVE_ADDRESSING = {"decisions": [{"type": "approve"}]}
OURS = {"decisions": [{"approval_id": "a", "digest": "d", "decision": "approve"}]}
BUDGET = {**CHOICE, "amounts": ["usd"], "id": "t/1:task:budget:0"}
AGAIN = {**BUDGET, "id": "t/1:task:budget:1"}
AFTER, BEFORE = Sent(at=6.0), Sent(at=4.0)


def asked_addressing(question: dict[str, Any]) -> dict[str, Any]:
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
        (approvals(), APPROVE_ADDRESSING, AFTER),
        (approvals(), APPROVE_ADDRESSING, Sent(at=6.0, seen=True, approved_before=True)),
        (approvals(), OURS, Sent(at=None, approved_before=True)),
    ],
)
def test_a_reply_goes_to_the_one_question(question: Any, reply: Any, sent: Sent) -> None:
    """It can mean no other, or it names what it means."""
    assert list(addressed(reply, {ID: asked_addressing(question)}, sent)) == [ID]


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
        (approvals(), APPROVE_ADDRESSING, BEFORE, "sent before"),
        (approvals(), APPROVE_ADDRESSING, Sent(at=6.0, approved_before=True), "which it means"),
        (approvals(digest="new"), OURS, AFTER, "digest"),
    ],
)
def test_a_reply_that_may_mean_another_is_refused(
    question: Any, reply: Any, sent: Sent, why: str
) -> None:
    """What was shown is what runs: a stale yes is none to what is asked now."""
    with pytest.raises(ReplyRefused, match=why):
        addressed(reply, {ID: asked_addressing(question)}, sent)


@pytest.mark.parametrize(
    "pending", [{}, {ID: asked_addressing(PLAN), OTHER: asked_addressing(PLAN)}]
)
def test_it_needs_exactly_one_question(pending: dict[str, Any]) -> None:
    """Of two, nobody can say which is meant."""
    with pytest.raises(ReplyRefused, match=r"open"):
        addressed({"decision": "confirm"}, pending, AFTER)


def test_replies_by_id_are_read_too() -> None:
    """Decisions of an inbox become ours; an id that is not open stays, for the door to refuse."""
    replies = addressed(
        {ID: APPROVE_ADDRESSING, OTHER: "x"}, {ID: asked_addressing(approvals())}, BEFORE
    )

    assert replies == {ID: OURS, OTHER: "x"}
