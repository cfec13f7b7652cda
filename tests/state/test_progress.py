"""How far a task has come, by rule."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from tests.parts import GREEN, RED, a_failure, a_phase, a_plan, a_state, a_task
from tests.state.test_rounds import think

from daruma.state.progress import Progress, progress_of
from daruma.state.verification import Check, Verification

MIXED = Verification(
    checks=(
        Check(command="lint", passed=True, exit_code=0),
        Check(command="test", passed=False, exit_code=1),
    )
)
NEW = [think("a#1"), think("b#1", "x"), think("", "y")]


def planned(*statuses: str, **values: Any) -> Progress:
    phases = [a_phase(f"p{n}", status=status) for n, status in enumerate(statuses)]
    current = next((p.id for p in phases if p.status == "running"), phases[-1].id)
    state = a_state(task=a_task("plan_exec"), plan=a_plan(*phases, current=current), **values)
    return progress_of(state)


@pytest.mark.parametrize(
    ("values", "percent"),
    [
        ({}, 0),
        ({"steps": NEW}, 60),
        ({"steps": NEW[:1], "task": a_task(limits={"think": 6})}, 10),
        ({"verification": RED}, 0),
        ({"verification": MIXED}, 45),
        ({"verification": MIXED, "steps": NEW}, 60),
        ({"verification": GREEN}, 100),
    ],
)
def test_the_percentage_of_a_task_without_a_plan(values: dict[str, Any], percent: int) -> None:
    """60 % at most for steps with something new, 90 % at most for checks, 100 % if all pass."""
    assert progress_of(a_state(**values)).percent == percent


@pytest.mark.parametrize(
    ("statuses", "verification", "percent"),
    [
        (("pending", "pending"), None, 0),
        (("completed", "running"), None, 50),
        (("completed", "running"), MIXED, 72),
        (("completed", "failed"), MIXED, 50),
        (("completed", "completed"), GREEN, 100),
        (("running", "pending", "pending", "pending"), GREEN, 25),
    ],
)
def test_the_percentage_of_a_plan(
    statuses: tuple[str, ...], verification: Verification | None, percent: int
) -> None:
    """Completed phases count whole; the one at hand with its share."""
    assert planned(*statuses, verification=verification).percent == percent


def test_the_next_milestone() -> None:
    """What has to come about next: a red check first."""
    assert progress_of(a_state()).next_milestone == "an answer"
    assert progress_of(a_state(task=a_task("plan_exec"))).next_milestone == "a plan"
    assert planned("completed", "running").next_milestone == "the phase 'P1' is completed"
    assert planned("running", verification=MIXED).next_milestone == "test passes"


def test_the_reasoning_says_what_it_was_made_of() -> None:
    """Phases, steps and the last verification."""
    assert planned("completed", "running", verification=MIXED).reasoning == (
        "1 of 2 phases are completed; 0 of 0 steps brought something new; "
        "the last verification: lint: passed, test: failed (exit 1)"
    )


def test_three_steps_without_news_are_stuck_and_told_with_their_errors() -> None:
    """RE-01: the last of them is read from the history."""
    message = AIMessage("", id="t/1:answer:2", tool_calls=[{"name": "a", "args": {}, "id": "c"}])
    error = ToolMessage("it is gone", tool_call_id="c", id="t/1:answer:2:c", status="error")
    saw = progress_of(a_state(messages=[message, error]))
    steps = [think(f"a#{n}", "!x" if n else "") for n in range(3)]
    steps.append(think("a#3", "!x", ok=False))

    stuck = progress_of(a_state(messages=[message, error], steps=steps))

    assert (saw.is_stuck, saw.blockers) == (False, ("it is gone",))
    assert (stuck.is_stuck, stuck.blockers) == (True, ("it is gone",))


def test_a_loop_is_its_own_blocker() -> None:
    """RE-03: and it is stuck by definition."""
    found = progress_of(a_state(failure=a_failure("loop_detected", message="a, 2 times")))

    assert (found.is_stuck, found.blockers) == (True, ("a, 2 times",))


def test_an_estimate_is_plain_values() -> None:
    """RE-01's five, as JSON."""
    plain = progress_of(a_state()).to_dict()

    assert json.loads(json.dumps(plain)) == plain
    assert list(plain) == ["percent", "reasoning", "next_milestone", "blockers", "is_stuck"]
