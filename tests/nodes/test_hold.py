"""A thread is held until a person has said how to go on."""

from dataclasses import replace
from typing import Any

import pytest
from tests.parts import a_context, a_failure, a_phase, a_plan, a_task, asked

from daruma.nodes.hold import hold
from daruma.state.events import Event
from daruma.state.interrupts import ReplyRefused

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
    assert [event.type for event in events] == ["task_started", "rollback_decided"]
    assert events[1].to_dict()["decision"] == "keep"
    assert after["failure"] is None


async def test_the_failure_stays_for_a_retry() -> None:
    """The router sends it to rollback by that."""
    _, after = await asked(hold, VALUES, {"answer": "retry"})

    assert after["failure"] == VALUES["failure"]
    assert replace(after["steps"][0], at=0.0).signature == "hold:retry"


async def test_an_answer_that_is_none_is_refused() -> None:
    """Also where no door stood before it."""
    with pytest.raises(ReplyRefused, match="retry, keep"):
        await asked(hold, VALUES, {"answer": "restore"})
