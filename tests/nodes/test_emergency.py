"""The task is reported under its first failure, without asking a model."""

from dataclasses import replace
from typing import Any

import pytest
from tests.parts import RED, Says, a_context, a_failure, a_phase, a_plan, a_task, settings

from daruma.nodes.emergency import emergency
from daruma.state.channels import State

OWN = a_failure("llm_failure", message="own")
BUG = a_failure("internal_error", "verify", "KeyError: 'absent'")
UNDONE = a_failure("rollback_failed", "rollback", "not undone")
FALLEN = a_phase("a", status="failed", outcome="failed", failure=OWN)

AFTER_A = replace(a_plan(FALLEN, current="a"), first_failed="a")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"failure": OWN}, "llm_failure"),
        ({"failure": BUG, "origin": OWN}, "llm_failure"),
        ({"verification": RED}, "verification_failed"),
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


async def test_no_model_is_asked() -> None:
    """EM-02."""
    ask = Says("help")
    await emergency(State(task=a_task(), failure=OWN), a_context(ask=ask))

    assert ask.requests == []


async def test_a_running_phase_ends_with_its_own_failure() -> None:
    """PL-05: not with that of a phase that failed before it; its dependents fall with it."""
    plan = a_plan(FALLEN, a_phase("b", status="running"), a_phase("c", "b"), current="b")
    update = await emergency(State(task=a_task(), plan=plan, failure=BUG), a_context())

    after = update["plan"]
    assert after is not None
    assert [phase.status for phase in after.phases] == ["failed", "failed", "failed"]
    assert after.phases[1].failure == BUG


async def test_the_error_is_in_the_words_of_the_runs_settings() -> None:
    """EM-03: language and rules."""
    rules = {"llm_failure": {"suggestions": ["Call 555."]}}
    given = settings(fallback_chain={"emergency": {"language": "zh", "rules": rules}})
    update = await emergency(State(task=a_task(), failure=OWN), a_context(given=given))

    assert update["error"] is not None
    assert update["error"].to_error_message() == "模型调用失败：own\n1. Call 555."
