"""What the state becomes when an action is carried out."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import a_call, a_context, a_failure, a_state, settings
from tests.scripted_runs import shout

from daruma.state.events import Event
from daruma.state.failure import Failure
from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.recovery.action import Case, advice, carried_out

LOOP = Failure(code="loop_detected", node="main", message="a loop", tool="shout")


def case(failure: Failure = LOOP) -> Case:
    return Case(a_state(failure=failure, calls=(a_call(),)), failure, "t/1:recovery:0")


@pytest.mark.parametrize("strategy", ["retry", "alternative-tool", "parameter-adjustment"])
async def test_the_failure_is_closed_and_the_model_told(strategy: Strategy) -> None:
    """Calls of before are over; the failure is remembered as the origin."""
    update: Any = await carried_out(case(), RecoveryAction(strategy=strategy), a_context())

    assert (update["failure"], update["origin"], update["calls"]) == (None, LOOP, ())
    assert [m.id for m in update["messages"]] == ["t/1:recovery:0"]


async def test_giving_up_changes_nothing() -> None:
    """The failure stays open: it goes on to emergency."""
    update: Any = await carried_out(case(), RecoveryAction(strategy="give-up"), a_context())

    assert update == {"origin": LOOP, "action": None}


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (a_failure("llm_failure"), False),
        (a_failure("timeout"), False),
        (a_failure("llm_failure", "plan"), False),
        (a_failure("timeout", "verify"), False),
        (LOOP, True),
    ],
)
async def test_who_was_never_heard_is_told_nothing(failure: Failure, told: bool) -> None:
    """A retry sends the request again just as it was."""
    update: Any = await carried_out(case(failure), RecoveryAction(strategy="retry"), a_context())

    assert bool(update["messages"]) is told


@pytest.mark.parametrize(
    ("strategy", "tool_name", "words"),
    [
        ("retry", None, "Try again."),
        ("alternative-tool", None, "The tool shout is not there for the next step: use another"),
        ("alternative-tool", "whisper", "use whisper."),
        ("parameter-adjustment", None, "Go on another way."),
    ],
)
def test_the_advice_names_what_failed_and_what_to_do(
    strategy: Strategy, tool_name: str | None, words: str
) -> None:
    """And why, in the words of who chose it."""
    action = RecoveryAction(strategy=strategy, tool_name=tool_name, reasoning="It is slow.")
    said = advice(LOOP, action)

    assert said.startswith("The last step failed: a loop.")
    assert words in said
    assert said.endswith("It is slow.")


@pytest.mark.parametrize(("parameters", "called"), [(None, False), ({}, True)])
async def test_a_call_needs_parameters_if_only_none(
    parameters: dict[str, str] | None, called: bool
) -> None:
    """Not given they are advice; given as none they are those of a tool that takes none."""
    action = RecoveryAction(
        strategy="parameter-adjustment", tool_name="shout", parameters=parameters
    )
    update: Any = await carried_out(case(), action, a_context(tools=[shout]))

    assert isinstance(update["messages"][0], AIMessage) is called


async def test_a_corrected_call_that_was_mended_is_on_record() -> None:
    """TL-11: as for any call."""
    events: list[Event] = []
    action = RecoveryAction(
        strategy="parameter-adjustment", tool_name="Shout", parameters={"Text": "x"}
    )
    update: Any = await carried_out(case(), action, a_context(tools=[shout], events=events))

    assert [(c.name, c.args) for c in update["calls"]] == [("shout", {"text": "x"})]
    assert [e.type for e in events] == ["answer_audited"]


async def test_a_corrected_call_has_an_id_that_providers_take() -> None:
    """OpenAI refuses ids of calls with more than 40 characters, and a thread's id may have more."""
    action = RecoveryAction(
        strategy="parameter-adjustment", tool_name="shout", parameters={"text": "x"}
    )
    long = replace(case(), message_id=f"{'f' * 36}/1:recovery:0")
    update: Any = await carried_out(long, action, a_context(tools=[shout]))

    (call,) = update["messages"][0].tool_calls
    assert len(call["id"]) <= 40


async def test_the_first_failure_stays_the_origin() -> None:
    """EM-04: recovery may meet others on the way."""
    first = a_failure(message="first")
    given = replace(case(), state=a_state(failure=LOOP, origin=first))
    update: Any = await carried_out(given, RecoveryAction(strategy="retry"), a_context())

    assert update["origin"] == first


async def test_a_corrected_call_that_can_not_run_is_answered_with_an_error() -> None:
    """TL-03 and TL-12: it is like any other call."""
    action = RecoveryAction(
        strategy="parameter-adjustment", tool_name="shout", parameters={"text": "x"}
    )
    denied = settings(tools={"policy": {"shout": "deny"}})
    context = a_context(tools=[shout], given=denied)
    update: Any = await carried_out(case(), action, context)

    message, result = update["messages"]
    assert result.tool_call_id == message.tool_calls[0]["id"]
    assert result.status == "error"
