"""Questions as an inbox shows them."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from daruma.state.calls import Approval
from daruma.state.interrupts import approval_request, inbox_of, reply_schema

PLAN: dict[str, Any] = {
    "type": "spec_review_request",
    "goal": "Tidy up",
    "phases": [{"title": "Look"}],
}
RECOVERY: dict[str, Any] = {
    "type": "recovery_request",
    "failure": "it broke",
    "action": {"strategy": "retry"},
}
CHOICE: dict[str, Any] = {
    "type": "question",
    "question": "Which?",
    "context": "two ways",
    "options": ["left", "right"],
}


def approvals(**changes: Any) -> dict[str, Any]:
    call = {"approval_id": "a", "digest": "d", "exact": "e", "tool": "pay", "args": {"sum": 5}}
    rest = {"reason": "costs", "required": True, "deny_effect": "block", "shown": '{"sum": 5}'}
    return dict(approval_request((Approval(**{**call, **rest, **changes}),), None))


@pytest.mark.parametrize(
    ("question", "allowed"),
    [
        (PLAN, ["approve", "edit", "reject"]),
        (approvals(), ["approve", "edit", "reject"]),
        (RECOVERY, ["approve", "reject", "respond"]),
        (CHOICE, ["edit", "respond"]),
    ],
)
def test_each_question_is_a_request_of_one_form(
    question: dict[str, Any], allowed: list[str]
) -> None:
    """An inbox renders what has requests and a config for the name of each."""
    inbox = inbox_of(question)

    (request,), (config,) = inbox["action_requests"], inbox["review_configs"]
    assert (config["action_name"], config["allowed_decisions"]) == (request["name"], allowed)
    assert request["description"]


def test_an_approval_says_all_that_it_rests_on() -> None:
    """What is shown of it is the text with hidden characters spelled out, and each warning."""
    question = approvals(warnings=("sum: invisible",), not_covered=("vsock",), sandbox="landlock")

    (request,) = inbox_of(question)["action_requests"]

    assert request["args"] == {"sum": 5}
    for part in ('{"sum": 5}', "sum: invisible", "costs", "landlock", "vsock", "required"):
        assert part in request["description"]


def test_a_tools_own_question_is_left_as_it_is() -> None:
    """Only what is known can be put into another form."""
    assert inbox_of({"type": "something"}) == {}


@pytest.mark.parametrize(
    ("question", "fits", "misfits"),
    [
        (PLAN, {"decision": "confirm"}, {"decision": "reject"}),
        (RECOVERY, {"decision": "instruct", "text": "Wait"}, {"decision": "instruct"}),
        (CHOICE, {"answer": "left"}, {"answer": "up"}),
        ({**CHOICE, "amounts": ["usd"]}, {"answer": "usd 2.5"}, {"answer": "usd lots"}),
        (
            approvals(),
            {"decisions": [{"approval_id": "a", "digest": "d", "decision": "deny"}]},
            {"decisions": []},
        ),
    ],
)
def test_the_schema_is_that_of_the_reply(question: Any, fits: Any, misfits: Any) -> None:
    """A client can make a form of it, and check what was filled in."""
    schema = Draft202012Validator(reply_schema(question))

    assert (schema.is_valid(fits), schema.is_valid(misfits)) == (True, False)
