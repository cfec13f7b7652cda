"""A person is asked about a recovery, and what they say is done."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import a_context, a_failure, a_state, asked, refusal, taken
from tests.scripted_runs import shout

from daruma.nodes.consult import consult
from daruma.state.events import Event
from daruma.state.failure import RecoveryAction

FAILURE = a_failure(message="request 7 failed")
CORRECTED = RecoveryAction(
    strategy="parameter-adjustment",
    reasoning="The text was missing.",
    tool_name="shout",
    parameters={"text": "x"},
    confidence=0.6,
    assent="approval",
)


def values(action: RecoveryAction = CORRECTED) -> dict[str, Any]:
    steps = taken("think", ok=False) + taken("recover", signature=FAILURE.signature)
    messages = [HumanMessage("Do it", id="q")]
    task = a_state().task
    return {
        "messages": messages,
        "task": task,
        "failure": FAILURE,
        "origin": FAILURE,
        "action": action,
        "steps": steps,
    }


def question(text: str = "") -> RecoveryAction:
    return RecoveryAction(strategy="escalate", escalation_message=text, assent="question")


async def test_the_request_shows_the_action_as_it_is() -> None:
    """RE-06: strategy, tool, parameters, confidence, and what failed."""
    shown, _ = await asked(consult, values(), {"decision": "approve"}, a_context(tools=[shout]))

    assert shown["type"] == "recovery_request"
    assert shown["failure"] == "request 7 failed"
    assert shown["action"] == CORRECTED.to_dict()
    assert shown["id"] == "t/1:consult:0"


@pytest.mark.parametrize(
    ("reply", "carried", "calls", "failure", "told"),
    [
        ({"decision": "approve"}, "approved", [("shout", {"text": "x"})], None, None),
        ({"decision": "deny"}, "denied", [], FAILURE, None),
        (
            {"decision": "deny", "reason": "It costs too much."},
            *("denied", [], FAILURE, "A person denied this: It costs too much."),
        ),
        (
            {"decision": "instruct", "text": "Whisper it."},
            *("instructed", [], None, "Whisper it."),
        ),
        (
            {"decision": "instruct", "text": "Stop."},
            *("denied", [], FAILURE, "A person stopped the work."),
        ),
    ],
)
async def test_what_a_person_says_is_done_and_on_record(
    reply: Any, carried: str, calls: Any, failure: Any, told: str | None
) -> None:
    """EM-04, PL-04, RE-08: a failure that is not recovered from stays, under the first code.

    Whether it has worked is told by the failure's signature; what recovery opened is closed now.
    """
    events: list[Event] = []
    _, after = await asked(consult, values(), reply, a_context(tools=[shout], events=events))

    assert [(c.name, c.args) for c in after.get("calls", ())] == calls
    assert (after.get("failure"), after.get("action"), after["origin"]) == (failure, None, FAILURE)
    step = after["steps"][-1]
    assert (step.kind, step.signature) == ("consult", FAILURE.signature)
    assert step.recovery.carried == carried
    assert told is None or after["messages"][-1].text == told
    closed = {"type": "recovery_completed", "strategy": "parameter-adjustment", "carried": carried}
    assert [e.to_dict() for e in events[1:]] == [closed]


@pytest.mark.parametrize(
    ("text", "shown"), [("Which one?", "Which one?"), ("", "A step failed. What should be done?")]
)
async def test_a_question_is_asked_in_the_models_words_if_it_has_any(text: str, shown: str) -> None:
    """The answer becomes what the model is told."""
    asked_, after = await asked(consult, values(question(text)), {"answer": "The blue one."})

    assert (asked_["type"], asked_["question"], asked_["context"]) == (
        "question",
        shown,
        "request 7 failed",
    )
    assert after["messages"][-1].text == "The blue one."
    assert after["steps"][-1].recovery.carried == "answered"


@pytest.mark.parametrize("reply", [{"answer": "yes"}, {"decision": "instruct"}, "yes", {}])
async def test_a_reply_that_does_not_fit_is_refused(reply: object) -> None:
    """And decides nothing."""
    _, after = await asked(consult, values(), reply)

    assert refusal(after).startswith("a reply to a ")


async def test_without_an_action_it_is_a_bug() -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        await consult(a_state(failure=FAILURE), a_context())
