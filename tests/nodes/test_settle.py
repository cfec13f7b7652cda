"""A phase is closed with its outcome, and with what that means for the others."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.parts import GREEN, RED, a_call, a_context, a_failure, a_phase, a_plan, a_state, a_task

from daruma.nodes.settle import settle
from daruma.state.channels import State
from daruma.state.events import Event, PhaseCompleted, PhaseFailed
from daruma.state.outcome import LONGEST_ANSWER

PLAN = a_plan(
    a_phase("a", status="running"), a_phase("b", "a"), a_phase("c", "b"), a_phase("d"), current="a"
)


def state(**values: Any) -> State:
    answered = {"messages": [AIMessage("Done.")]}
    return a_state(**{"task": a_task("plan_exec"), "plan": PLAN} | answered | values)


async def test_a_completed_phase_lets_the_others_go_on() -> None:
    """PL-05."""
    events: list[Event] = []
    update = await settle(state(verification=GREEN), a_context(events=events))

    plan = update["plan"]
    assert plan is not None
    assert [p.status for p in plan.phases] == ["completed", "pending", "pending", "pending"]
    assert events == [PhaseCompleted(phase_id="a", title="A", number=1, of=4)]


async def test_a_failed_phase_keeps_its_reason_and_fails_its_dependents() -> None:
    """PL-05, and the event names those that fell with it."""
    events: list[Event] = []
    update = await settle(state(verification=RED), a_context(events=events))

    plan = update["plan"]
    assert plan is not None
    assert [p.status for p in plan.phases] == ["failed", "failed", "failed", "pending"]
    assert plan.phases[0].failure is not None
    assert plan.phases[0].failure.code == "verification_failed"
    (failed,) = events
    assert isinstance(failed, PhaseFailed)
    assert (failed.phase_id, failed.outcome, failed.fallen) == ("a", "failed", ("b", "c"))


@pytest.mark.parametrize("ended", [{}, {"verification": RED}])
async def test_the_phase_keeps_what_the_model_said(ended: dict[str, Any]) -> None:
    """MO-10: a failed one, too; and bounded, as the plan goes into every checkpoint."""
    update = await settle(state(messages=[AIMessage("x" * 9000)], **ended), a_context())

    assert update["plan"] is not None
    assert update["plan"].phases[0].answer == "x" * LONGEST_ANSWER


@pytest.mark.parametrize("failed", [{"failure": a_failure()}, {"origin": a_failure()}])
async def test_nothing_of_it_is_left_for_the_next_phase(failed: dict[str, Any]) -> None:
    """The reason lives on in the phase."""
    update = await settle(state(calls=(a_call(),), **failed), a_context())

    assert (update["failure"], update["origin"], update["calls"]) == (None, None, ())


@pytest.mark.parametrize(("rollback", "written"), [(None, ["1/a/done"]), ("snapshot", [])])
async def test_a_savepoint_follows_unless_the_phase_is_to_be_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rollback: Any, written: list[str]
) -> None:
    """RO-03: nothing is built on what a rollback is to take away."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    plan = a_plan(a_phase("a", status="running", rollback=rollback), current="a")
    task = a_task("plan_exec", workspace=str(tmp_path))

    update = await settle(state(task=task, plan=plan, verification=RED), a_context())

    assert [each.id for each in update.get("savepoints", [])] == written


async def test_a_task_without_phases_has_nothing_to_close() -> None:
    """Its failure has to reach the end."""
    assert await settle(state(plan=None, failure=a_failure()), a_context()) == {}
