"""A reply that does not fit its question is refused with one line that says what would."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.parts import a_call

from daruma.state.calls import Approval, approval_of
from daruma.state.interrupts import (
    Answer,
    Approve,
    Confirm,
    Decisions,
    Deny,
    Edit,
    Instruct,
    Reject,
    ReplyRefused,
    approval_request,
    inbox_of,
    is_question,
    kind_of,
    read_reply,
    reply_schema,
    summary_of,
    told_question,
)

REVIEW = {"type": "spec_review_request", "id": "p:spec_review", "spec_review_id": "p:spec_review"}
REVIEW |= {"goal": "Do it", "phases": [], "deadline": None}  # type: ignore[dict-item]  # as JSON has it
TEAM: Any = {**REVIEW, "experts": ["a", "b"]}
QUESTION = {"type": "question", "id": "q", "question": "What now?", "context": ""}
RECOVERY = {"type": "recovery_request", "id": "r", "failure": "it fell", "action": {}}
FIRST, SECOND = (approval_of(a_call(id_, args={"text": id_}), "/w") for id_ in ("c1", "c2"))
APPROVALS: Any = approval_request((FIRST, SECOND))


def decided(id_: str = "c1", **changes: Any) -> dict[str, Any]:
    digest = {"c1": FIRST.digest, "c2": SECOND.digest}.get(id_, "")
    return {"approval_id": id_, "digest": digest, "decision": "approve"} | changes


@pytest.mark.parametrize(
    ("question", "reply", "kind"),
    [
        (REVIEW, {"decision": "confirm"}, Confirm),
        (REVIEW, {"decision": "confirm", "spec_review_id": "p:spec_review"}, Confirm),
        (REVIEW, {"decision": "reject", "feedback": "smaller"}, Reject),
        (REVIEW, {"decision": "edit", "plan": {"phases": ["one"]}}, Edit),
        (TEAM, {"decision": "edit", "plan": {"phases": [{"expert": "a"}]}}, Edit),
        (QUESTION, {"answer": "go on"}, Answer),
        (RECOVERY, {"decision": "approve"}, Approve),
        (RECOVERY, {"decision": "deny"}, Deny),
        (RECOVERY, {"decision": "deny", "reason": "no"}, Deny),
        (RECOVERY, {"decision": "instruct", "text": "Ask Ann."}, Instruct),
        (APPROVALS, {"decisions": [decided("c2")]}, Decisions),
        (APPROVALS, {"decisions": [decided("c2"), decided("c1", decision="deny")]}, Decisions),
    ],
)
def test_a_reply_that_fits_is_read(question: Any, reply: Any, kind: type) -> None:
    """PL-02 and TL-14: every form of reply there is, in any order."""
    assert isinstance(read_reply(question, reply), kind)


@pytest.mark.parametrize(
    ("question", "reply", "said"),
    [
        (REVIEW, "yes", "a reply to a spec_review_request has the form"),
        (REVIEW, {"decision": "maybe"}, '"confirm"'),
        (REVIEW, {"decision": "reject"}, "feedback"),
        (REVIEW, {"decision": "reject", "feedback": ""}, "feedback"),
        (REVIEW, {"decision": "confirm", "feedback": "but"}, "has the form"),
        (
            REVIEW,
            {"decision": "confirm", "spec_review_id": "other"},
            "the open review is 'p:spec_review', not 'other'",
        ),
        (
            TEAM,
            {"decision": "edit", "plan": {"phases": [{"title": "x", "expert": "c"}]}},
            "unknown expert 'c'; there are: a, b",
        ),
        (REVIEW, {"decision": "edit", "plan": {"phases": []}}, "can not be run: the plan has no"),
        (
            REVIEW,
            {"decision": "edit", "plan": {"phases": [{"id": "a", "depends_on": ["a"]}]}},
            "a -> a",
        ),
        (RECOVERY, {"decision": "confirm"}, "a reply to a recovery_request has the form"),
        (RECOVERY, {"decision": "instruct"}, '"instruct", "text": "..."'),
        (RECOVERY, {"decision": "instruct", "text": ""}, '"instruct", "text": "..."'),
        (RECOVERY, {"decision": "approve", "text": "but"}, '"approve"'),
        (RECOVERY, {"answer": "yes"}, '"deny"'),
        (RECOVERY, "approve", '{"decision": "approve"}'),
        (REVIEW, {"decision": "reject", "feedback": " \n"}, "feedback"),
        (RECOVERY, {"decision": "instruct", "text": " \t"}, '"instruct", "text": "..."'),
        (QUESTION, {"answer": ""}, "answer"),
        (QUESTION, {"answer": "   "}, "answer"),
        (QUESTION, None, "a reply to a question has the form"),
        (APPROVALS, {"decisions": []}, "has the form"),
        (APPROVALS, {}, "edit"),
        (APPROVALS, {"decisions": [decided(decision="deny"), decided()]}, "once"),
        (APPROVALS, {"decisions": [decided("c9")]}, "no approval 'c9' is open; open: c1, c2"),
        (APPROVALS, {"decisions": [decided(digest="x")]}, "the digest given for 'c1' is not that"),
        (APPROVALS, {"decisions": [decided(digest=SECOND.digest)]}, "the digest given for 'c1'"),
        (APPROVALS, {"decisions": [decided(decision="edit")]}, "'c1': args go with edit"),
    ],
)
def test_a_reply_that_does_not_fit_is_refused(question: Any, reply: Any, said: str) -> None:
    """TL-13 and PL-02: wrong form, id, digest or plan; one line each."""
    with pytest.raises(ReplyRefused) as refused:
        read_reply(question, reply)

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_request_shows_all_that_would_run() -> None:
    """TL-13: id, digest, tool, arguments, reason, the directory, and for commands the line."""
    command = approval_of(a_call("c3", name="run_command", args={"command": "ls"}), "/w")
    request = approval_request((FIRST, command))

    plain, shell = request["approvals"]
    expected = {"approval_id", "digest", "tool", "args", "reason", "required", "deny_effect"}
    assert set(plain) == expected | {"sandbox", "not_covered", "shown", "warnings", "cwd"}
    assert (shell["command"], shell["cwd"]) == ("ls", "/w")
    assert (request["type"], request["id"], request["deadline"]) == (
        "approval_request",
        "c1:c3",
        None,
    )


# --- Questions as an inbox shows them.

PLAN: dict[str, Any] = {
    "type": "spec_review_request",
    "id": "r",
    "spec_review_id": "r",
    "goal": "Tidy up",
    "phases": [{"title": "Look"}],
    "deadline": None,
}
RECOVERY_INBOX: dict[str, Any] = {
    "type": "recovery_request",
    "id": "r",
    "failure": "it broke",
    "action": {"strategy": "retry", "confidence": 0.6},
    "deadline": None,
}
CHOICE: dict[str, Any] = {
    "type": "question",
    "id": "q",
    "question": "Which?",
    "context": "two ways",
    "deadline": None,
    "options": ["left", "right"],
}


def approvals(**changes: Any) -> dict[str, Any]:
    call = {"approval_id": "a", "digest": "d", "tool": "pay", "args": {"sum": 5}}
    rest = {"reason": "costs", "required": True, "deny_effect": "block", "shown": '{"sum": 5}'}
    return dict(approval_request((Approval(**{**call, **rest, **changes}),)))


@pytest.mark.parametrize(
    ("question", "allowed"),
    [
        (PLAN, ["approve", "edit", "reject"]),
        (approvals(), ["approve", "edit", "reject"]),
        (RECOVERY_INBOX, ["approve", "reject", "respond"]),
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


LIKE_OURS: list[Any] = [
    {"type": "approval_request", "id": 7, "text": "Deploy?"},
    {"type": "approval_request", "approvals": []},
    {**approvals(), "approvals": ["boo"]},
    {**approvals(), "approvals": [{**approvals()["approvals"][0], "args": "none"}]},
    {**PLAN, "phases": "abc"},
    {**PLAN, "phases": [{}]},
    {**PLAN, "experts": 3},
    {**PLAN, "deadline": "1"},
    {**RECOVERY_INBOX, "action": {"strategy": "retry"}},
    {**CHOICE, "options": 3},
    {"type": "question", "question": "Which?"},
    {"type": ["question"]},
    None,
]


@pytest.mark.parametrize("value", [PLAN, approvals(), RECOVERY_INBOX, CHOICE, *LIKE_OURS])
def test_a_question_is_ours_by_its_whole_form(value: Any) -> None:
    """FA-08: what a tool asks under the name of ours is its own, and is told as it stands."""
    assert is_question(value) is (value not in LIKE_OURS)
    if value in LIKE_OURS:
        assert (kind_of(value), summary_of(value)) == ("tool", str(value))
        assert told_question(value)["question"] in (repr(value), "Which?")


def test_a_tools_own_question_is_left_as_it_is() -> None:
    """Only what is known can be put into another form."""
    assert inbox_of({"type": "something"}) == {}


@pytest.mark.parametrize(
    ("question", "fits", "misfits"),
    [
        (PLAN, {"decision": "confirm"}, {"decision": "reject"}),
        (RECOVERY_INBOX, {"decision": "instruct", "text": "Wait"}, {"decision": "instruct"}),
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
