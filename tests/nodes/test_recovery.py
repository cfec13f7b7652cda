"""Recovery adjusts after a first failure, asks a person after a repeated one, and then gives up."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import a_context, a_failure, a_state, a_task, asked, taken

from daruma.nodes.recovery import by_rule, recovery
from daruma.state.channels import State
from daruma.state.events import Event

FAILURE = a_failure(message="request 7 failed")
MESSAGES = [HumanMessage("Do it", id="q")]


def state(recoveries: int = 1, tried: int = 0, **values: Any) -> State:
    task = a_task(limits={"recoveries": recoveries})
    steps = taken("recover", signature=FAILURE.signature) * tried
    return a_state(**{"task": task, "failure": FAILURE, "steps": steps} | values)


@pytest.mark.parametrize(
    ("recoveries", "tried", "strategy"),
    [
        (0, 0, "give-up"),
        (1, 0, "parameter-adjustment"),
        (1, 1, "give-up"),
        (2, 1, "escalate"),
        (2, 2, "give-up"),
    ],
)
def test_the_strategy_follows_from_the_record(recoveries: int, tried: int, strategy: str) -> None:
    """RE-05 and RE-07."""
    assert by_rule(state(recoveries, tried), FAILURE) == strategy


def test_another_failure_is_a_first_one() -> None:
    """RE-07 speaks of one failure; numbers do not make it another."""
    known = state(1, 1)

    assert by_rule(known, a_failure(message="other")) == "parameter-adjustment"
    assert by_rule(known, a_failure(message="request 8 failed")) == "give-up"


def test_without_budget_there_is_nothing_to_retry_with() -> None:
    """BU-01."""
    spent = taken("think", "think", "think")

    assert by_rule(state(steps=spent), FAILURE) == "give-up"


async def test_an_adjustment_is_told_to_the_model() -> None:
    """The failure is closed and remembered as the origin; the recovery is on record."""
    update = await recovery(state(), a_context())

    assert (update["failure"], update["origin"]) == (None, FAILURE)
    assert "request 7 failed" in update["messages"][0].text
    assert update["messages"][0].id == "t/1:recovery:0"
    assert [(s.kind, s.signature) for s in update["steps"]] == [("recover", FAILURE.signature)]


async def test_giving_up_leaves_the_failure_open() -> None:
    """EM-04: the first failure stays the origin."""
    first = a_failure(message="first")

    assert await recovery(state(0, origin=first), a_context()) == {"origin": first}


async def test_a_person_is_asked_and_heard() -> None:
    """RE-05: the answer becomes what the model is told."""
    values: dict[str, Any] = {"messages": MESSAGES, "task": state(2).task, "failure": FAILURE}
    values["steps"] = taken("recover", signature=FAILURE.signature)
    question, after = await asked(recovery, values, {"answer": "Use another tool."})

    assert (question["type"], question["context"]) == ("question", "request 7 failed")
    assert after["messages"][-1].text == "Use another tool."
    assert after.get("failure") is None


async def test_recoveries_are_told_from_start_to_end() -> None:
    """RE-09."""
    events: list[Event] = []
    await recovery(state(), a_context(events=events))

    assert [e.type for e in events] == [
        "recovery_started",
        "recovery_action",
        "recovery_completed",
    ]


async def test_without_a_failure_it_is_a_bug() -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        await recovery(State(task=a_task()), a_context())
