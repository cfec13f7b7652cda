"""A thread is held until a person has said how to go on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.parts import (
    a_context,
    a_failure,
    a_phase,
    a_plan,
    a_savepoint,
    a_state,
    a_task,
    asked,
    refusal,
    taken,
)

from daruma.nodes.hold import WAYS, _apply_decision, hold, question_of
from daruma.state.channels import State
from daruma.state.events import Event

VALUES: dict[str, Any] = {
    "task": a_task(),
    "plan": a_plan(a_phase("a", status="failed", rollback_command="false"), current="a"),
    "failure": a_failure("rollback_failed", "rollback"),
}


async def test_nothing_is_done_before_the_answer() -> None:
    """RO-03: then it is done as it says, in whatever spelling."""
    events: list[Event] = []

    question, after = await asked(hold, VALUES, {"answer": " KEEP "}, a_context(events=events))

    assert question["type"] == "question"
    assert question["options"] == ["retry", "keep"]
    assert [event.type for event in events] == [
        "question_closed",
        "task_started",
        "rollback_decided",
    ]
    assert events[2].to_dict()["decision"] == "keep"
    assert after["failure"] is None


async def test_the_failure_stays_for_a_retry() -> None:
    """The router sends it to rollback by that."""
    _, after = await asked(hold, VALUES, {"answer": "retry"})

    assert after["failure"] == VALUES["failure"]
    assert replace(after["steps"][0], at=0.0).signature == "hold:retry"


async def test_an_answer_that_is_none_is_refused() -> None:
    """Where no door stood before it, the question says why, and stays open."""
    _, after = await asked(hold, VALUES, {"answer": "restore"})

    assert refusal(after) == "the answer has to be one of: retry, keep"


# --- What becomes of a thread whose rollback failed: a question, and an effect for each answer.

HELD = a_plan(a_phase("a", status="failed", rollback_command="false"), a_phase("b"), current="a")
FAILED = a_failure("rollback_failed", "rollback", "it did not go")


def state(**values: Any) -> State:
    return a_state(**{"plan": HELD, "failure": FAILED, "steps": taken("think", "think")} | values)


def test_the_question_says_what_failed_and_what_can_be_done() -> None:
    """RO-03: restoring is only offered where there is what to restore."""
    with_snapshot = state(savepoints=[a_savepoint("1/a")])
    without = state(savepoints=[a_savepoint("1/a", snapshot=None), a_savepoint("1/b")])

    question = question_of(with_snapshot)

    assert question["question"] == "rollback_failed: it did not go. What now?"
    assert question["options"] == ["retry", "restore", "keep"]
    assert question["context"].splitlines() == [*WAYS.values()]
    assert question["deadline"] is None
    assert question_of(without)["options"] == ["retry", "keep"]
    assert question_of(without)["context"].splitlines() == [WAYS["retry"], WAYS["keep"]]


def test_each_time_it_is_another_question() -> None:
    """A reply to the one before must not answer it."""
    first, second = state(), state(steps=taken("think", "think", "consult"))

    assert question_of(first)["id"] == "t/1:hold:a:2"
    assert question_of(second)["id"] == "t/1:hold:a:3"


@pytest.mark.parametrize("way", [*WAYS])
async def test_each_decision_is_told_and_on_record(way: str) -> None:
    """PL-04: the task is under way again; its error is none by now.

    A retry runs the rollback as it was; restoring goes by the snapshot alone, so that the command
    that failed is not run again, and other phases keep what they have.
    """
    events: list[Event] = []
    update = await _apply_decision(state(), way, a_context(events=events))

    assert [event.type for event in events][:2] == ["task_started", "rollback_decided"]
    assert events[1].to_dict()["decision"] == way
    (step,) = update["steps"]
    assert (step.kind, step.signature, step.at) == ("consult", f"hold:{way}", 100.0)
    assert update["error"] is None
    if way != "keep":
        assert update.keys() == {"error", "steps"} | ({"plan"} if way == "restore" else set())
    if way == "restore":
        plan: Any = update["plan"]
        assert (plan.phases[0].rollback, plan.phases[0].rollback_command) == ("snapshot", None)
        assert plan.phases[1] == HELD.phases[1]


async def test_keeping_makes_a_savepoint_of_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RO-03: what comes next builds on it, since a person has said so."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    task = a_task(workspace=str(tmp_path / "ws"))

    update = await _apply_decision(state(task=task), "keep", a_context())

    (savepoint,) = update["savepoints"]
    assert (savepoint.id, savepoint.phase_id) == ("1/a/done", "a")
    assert savepoint.snapshot is not None
    assert savepoint.note.startswith("a person kept the files")
    assert update["failure"] is None


@pytest.mark.parametrize("plan", [None, a_plan(a_phase("a"))])
async def test_without_a_phase_it_is_a_bug(plan: Any) -> None:
    """The table never leads here then."""
    with pytest.raises(LookupError):
        question_of(state(plan=plan))
    with pytest.raises(LookupError):
        await _apply_decision(state(plan=plan), "keep", a_context())
