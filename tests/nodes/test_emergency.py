"""The task is reported under its first failure, without asking a model."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import RED, Says, a_context, a_failure, a_phase, a_plan, a_task, settings

from daruma.nodes.emergency import emergency
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.failure import Failure

OWN = a_failure("llm_failure", message="own")
BUG = a_failure("internal_error", "verify", "KeyError: 'absent'")
UNDONE = a_failure("rollback_failed", "rollback", "not undone")
FALLEN = a_phase("a", status="failed", outcome="failed", failure=OWN)

RUNNING = a_plan(a_phase("b", status="running"), current="b")
AFTER_A = replace(a_plan(FALLEN, current="a"), first_failed="a")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"failure": OWN}, "llm_failure"),
        ({"failure": BUG, "origin": OWN}, "llm_failure"),
        ({"verification": RED, "messages": [AIMessage("Done.")]}, "verification_failed"),
        ({}, "max_steps_exceeded"),
        ({"plan": AFTER_A}, "llm_failure"),
        ({"plan": AFTER_A, "failure": UNDONE}, "rollback_failed"),
    ],
)
async def test_the_error_is_that_of_the_first_failure(values: dict[str, Any], code: str) -> None:
    """EM-04; only a rollback that failed comes before it (RO-03)."""
    update = await emergency(State(task=a_task(), **values), a_context())

    assert update["error"] is not None
    assert update["error"].error_code == code


async def test_a_running_phase_ends_with_its_own_failure() -> None:
    """PL-05: not with that of a phase that failed before it; its dependents fall with it."""
    plan = a_plan(FALLEN, a_phase("b", status="running"), a_phase("c", "b"), current="b")
    update = await emergency(State(task=a_task(), plan=plan, failure=BUG), a_context())

    after = update["plan"]
    assert after is not None
    assert [phase.status for phase in after.phases] == ["failed", "failed", "failed"]
    assert after.phases[1].failure == BUG


async def test_the_error_is_in_the_words_of_the_runs_settings() -> None:
    """EM-03: language and rules; no model is asked (EM-02)."""
    rules = {"llm_failure": {"suggestions": ["Call 555."]}}
    given = settings(fallback_chain={"emergency": {"language": "zh", "rules": rules}})
    ask = Says("help")
    update = await emergency(State(task=a_task(), failure=OWN), a_context(ask=ask, given=given))

    assert ask.requests == []

    assert update["error"] is not None
    assert update["error"].to_error_message() == "模型调用失败：own\n1. Call 555."


async def test_a_running_phase_ends_with_what_recovery_worked_on() -> None:
    """EM-04, and the phase that was told to have started is told to have failed (PL-04)."""
    events: list[Event] = []
    given = State(task=a_task(), plan=RUNNING, failure=BUG, origin=OWN)
    update = await emergency(given, a_context(events=events))

    assert update["plan"] is not None
    assert update["plan"].phases[0].failure == OWN
    assert [event.type for event in events] == ["phase_failed"]


@pytest.mark.parametrize("failure", [None, BUG])
async def test_a_phase_that_has_ended_is_not_ended_again(failure: Failure | None) -> None:
    """A bug after it is none of its own."""
    plan = replace(a_plan(a_phase("b", status="completed", outcome="completed")), current="b")
    update = await emergency(State(task=a_task(), plan=plan, failure=failure), a_context())

    assert "plan" not in update
