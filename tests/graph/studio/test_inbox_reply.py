"""Decisions of an inbox, and the replies that they come to."""

from typing import Any

import pytest
from tests.state.test_inbox import CHOICE, PLAN, RECOVERY, approvals

from daruma.graph.studio.inbox import from_inbox, is_of_an_inbox
from daruma.state.interrupts import ReplyRefused, inbox_of

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
