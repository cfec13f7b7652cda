"""A person is asked about a recovery, and what they say is done."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import a_context, a_failure, a_state, asked, refusal, taken
from tests.scripted_runs import shout

from daruma.nodes.consult import consult
from daruma.state.events import Event
from daruma.state.recovery import RecoveryAction

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


async def test_what_is_approved_is_done() -> None:
    """The corrected call is made, and the failure is closed."""
    _, after = await asked(consult, values(), {"decision": "approve"}, a_context(tools=[shout]))

    assert [(c.name, c.args) for c in after["calls"]] == [("shout", {"text": "x"})]
    assert (after.get("failure"), after.get("action"), after["origin"]) == (None, None, FAILURE)
    assert after["steps"][-1].recovery.carried == "approved"


async def test_what_is_denied_is_not_done_and_the_failure_stays() -> None:
    """EM-04: under the first code."""
    _, after = await asked(consult, values(), {"decision": "deny"}, a_context(tools=[shout]))

    assert (after["failure"], after.get("action")) == (FAILURE, None)
    assert after.get("calls", ()) == ()
    assert after["steps"][-1].recovery.carried == "denied"


async def test_why_something_is_denied_stands_in_the_history() -> None:
    """For the next request on the thread, and whoever reads it."""
    reply = {"decision": "deny", "reason": "It costs too much."}
    _, after = await asked(consult, values(), reply, a_context(tools=[shout]))

    assert after["messages"][-1].text == "A person denied this: It costs too much."


async def test_an_instruction_takes_the_actions_place() -> None:
    """The model hears the person's words, and nothing else is done."""
    reply = {"decision": "instruct", "text": "Whisper it."}
    _, after = await asked(consult, values(), reply, a_context(tools=[shout]))

    assert after["messages"][-1].text == "Whisper it."
    assert after.get("failure") is None
    assert after["steps"][-1].recovery.carried == "instructed"


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


async def test_it_closes_what_recovery_opened() -> None:
    """PL-04, once the person has answered and not before."""
    events: list[Event] = []
    await asked(consult, values(), {"decision": "deny"}, a_context(events=events))

    assert [e.to_dict() for e in events[1:]] == [
        {
            "type": "recovery_completed",
            "strategy": "parameter-adjustment",
            "carried": "denied",
        }
    ]


async def test_without_an_action_it_is_a_bug() -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        await consult(a_state(failure=FAILURE), a_context())


async def test_its_step_is_that_of_the_failure() -> None:
    """RE-08: whether what a person agreed to has worked is told by that."""
    _, after = await asked(consult, values(), {"decision": "approve"}, a_context(tools=[shout]))

    assert (after["steps"][-1].kind, after["steps"][-1].signature) == ("consult", FAILURE.signature)
