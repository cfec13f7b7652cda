"""Who helps begins, or is told why not; those that write begin from one state of the files."""

from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_call, a_context, a_state, a_task

from daruma.nodes.delegate import delegate
from daruma.state.channels import State
from daruma.state.events import Event


def asked(id_: str, status: Any = "ready", **args: Any) -> Any:
    return a_call(
        id_, status, name="delegate", args={"task": "Help  me\nnow", **args}, delegated=True
    )


def state(*calls: Any, **task: Any) -> State:
    return a_state(task=a_task(**task), calls=calls)


async def test_each_begins_under_the_id_of_its_call() -> None:
    """PL-08: what is not ready, or no helper's, is left alone; nothing is kept for who reads."""
    events: list[Event] = []
    given = (asked("a"), a_call("b"), asked("c", "awaiting"))

    update = await delegate(state(*given), a_context(events=events))

    assert update == {"calls": given, "messages": [], "savepoints": []}
    assert [event.to_dict() for event in events] == [
        {"type": "tool_started", "call_id": "a", "tool": "delegate", "summary": "Help me now"},
        {"type": "member_started", "phase_id": "a", "expert": "", "workspace": None},
    ]


async def test_who_can_not_begin_is_answered() -> None:
    """PL-04, PL-08: and told as ended; the others begin."""
    events: list[Event] = []
    given = asked("a", expert="wizard"), asked("b", write=True), asked("c", expert="tester")

    update = await delegate(state(*given), a_context(events=events))

    calls: Any = update["calls"]
    assert [call.status for call in calls] == ["failed", "failed", "ready"]
    assert [each.tool_call_id for each in update["messages"]] == ["a", "b"]
    assert "developer, tester, writer" in str(update["messages"][0].content)
    kinds = [event.type for event in events]
    assert kinds == ["tool_started", "tool_completed"] * 2 + ["tool_started", "member_started"]


async def test_those_that_write_begin_from_one_savepoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PL-08, RO-03: the workspace as it is, under the name of the first of them."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    events: list[Event] = []
    given = asked("a"), asked("b", write=True), asked("c", write=True)

    update = await delegate(state(*given, workspace=str(tmp_path / "ws")), a_context(events=events))

    (savepoint,) = update["savepoints"]
    assert (savepoint.id, savepoint.phase_id, bool(savepoint.snapshot)) == ("1/b", "b", True)
    where = [event.to_dict()["workspace"] for event in events if event.type == "member_started"]
    assert where[0] == str(tmp_path / "ws")
    assert len({*where}) == 3
