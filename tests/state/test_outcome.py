"""How work ended is read out of the state: first failure, then checks, then the answer."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from tests.parts import GREEN, RED, a_failure, a_phase, a_plan, a_task, calling, taken

from daruma.state.channels import State
from daruma.state.outcome import answer, stopped_text, work_failure, work_status
from daruma.state.task import Status
from daruma.state.verification import Verification

ANSWERED: dict[str, Any] = {"messages": [AIMessage("Done.")]}
SILENT: dict[str, Any] = {"messages": [HumanMessage("Do it")]}
AT_P2 = a_plan(a_phase("p1"), a_phase("p2"), current="p2")
SHORT = a_task("plan_exec", limits={"turn": 2})
NOTHING_TO_RUN = Verification(note="nothing to verify")


@pytest.mark.parametrize(
    ("values", "status"),
    [
        (ANSWERED, "completed"),
        (SILENT, "max_steps_exceeded"),
        ({"messages": [calling("shout")]}, "max_steps_exceeded"),
        (ANSWERED | {"failure": a_failure("llm_failure")}, "failed"),
        (ANSWERED | {"failure": a_failure("approval_denied")}, "blocked"),
        (ANSWERED | {"verification": RED}, "failed"),
        (ANSWERED | {"verification": GREEN}, "completed"),
        (SILENT | {"verification": GREEN}, "max_steps_exceeded"),
        (SILENT | {"verification": RED}, "max_steps_exceeded"),
        (SILENT | {"verification": RED, "steps": taken("reflect")}, "max_steps_exceeded"),
        (ANSWERED | {"verification": NOTHING_TO_RUN}, "completed"),
        (SILENT | {"verification": NOTHING_TO_RUN}, "max_steps_exceeded"),
        (ANSWERED | {"verification": RED, "steps": taken("reflect")}, "gave_up_after_reflections"),
        (
            ANSWERED | {"verification": RED, "steps": taken("think", "think", "think")},
            "max_steps_exceeded",
        ),
        (ANSWERED | {"verification": RED, "failure": a_failure()}, "failed"),
        (
            ANSWERED | {"verification": RED, "steps": taken("reflect", phase="p1"), "plan": AT_P2},
            "failed",  # reflections of another phase do not count
        ),
        (
            SILENT | {"verification": GREEN, "task": SHORT, "steps": taken("think", "think")},
            "max_steps_exceeded",  # TL-16: at ``max_steps_per_turn``, green checks or not
        ),
    ],
)
def test_the_status_of_work(values: dict[str, Any], status: Status) -> None:
    """MO-08 and VE-05: which of the statuses a piece of work ends with."""
    assert work_status(State(**{"task": a_task()} | values)) == status


def test_the_first_failure_is_the_one_that_is_told() -> None:
    """EM-04: what recovery was working on comes before what came of that."""
    first, second = a_failure(message="first"), a_failure(message="second")

    assert work_failure(State(origin=first, failure=second), "failed") == first
    assert work_failure(State(failure=second), "failed") == second
    assert work_failure(State(origin=first), "completed") is None


def test_red_checks_become_a_failure_that_shows_them() -> None:
    """EM-02: ``verification_failed``, with what the checks said kept as its detail."""
    failure = work_failure(State(verification=RED, **ANSWERED), "failed")

    assert failure is not None
    assert failure.code == "verification_failed"
    assert "false: failed (exit 1)" in failure.message
    assert "it is red" in failure.detail


def test_used_up_steps_become_a_failure() -> None:
    """BU-01: the message names the limit that bound, by its one setting."""
    failure = work_failure(State(task=a_task(limits={"think": 3})), "max_steps_exceeded")

    assert failure is not None
    assert failure.code == "max_steps_exceeded"
    assert failure.message == "Stopped: exceeded budgets.max_steps (3)."


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (AIMessage(" Done. "), "Done."),
        (AIMessage([{"type": "text", "text": "Done."}]), "Done."),
        (calling("shout"), ""),
        (HumanMessage("hello"), ""),
        (AIMessage(""), ""),
    ],
)
def test_an_answer_is_a_last_message_without_calls(last: Any, text: str) -> None:
    """TL-01: anything else is no candidate for the final answer."""
    assert answer(State(messages=[HumanMessage("Do it"), last])) == text
    assert answer(State()) == ""


def test_the_text_says_which_limit_was_reached() -> None:
    """TL-16: ``Stopped: exceeded max_steps_per_turn.``, to the letter."""
    task = a_task(limits={"turn": 2})

    assert stopped_text(State(task=task, steps=taken("think", "think"))) == (
        "Stopped: exceeded max_steps_per_turn."
    )
    assert stopped_text(State(task=a_task("plan_exec"), steps=taken("think"))) == (
        "Stopped: exceeded budgets.think (3)."
    )
