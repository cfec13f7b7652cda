"""A call of the planner is run by a tool that reads, and by no other."""

from pathlib import Path

import pytest
from tests.parts import a_call, a_context, a_task

from daruma.nodes.look import look
from daruma.state.calls import Dispatch
from daruma.state.events import Event


def shout(text: str) -> str:
    """Say it loudly."""
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("name", "args", "status"),
    [
        ("read_output", {"id": "0123"}, "failed"),
        ("search", {"pattern": "x"}, "failed"),
        ("shout", {"text": "x"}, "failed"),
        ("run_command", {"command": "ls"}, "failed"),
    ],
)
async def test_what_is_no_tool_that_reads_is_not_run(
    name: str, args: dict[str, str], status: str
) -> None:
    """PL-01a: without a workspace none of these is; each is answered all the same."""
    events: list[Event] = []
    dispatch = Dispatch(task=a_task("plan_exec"), call=a_call(name=name, args=args))
    update = await look(dispatch, a_context(tools=[shout], events=events))
    call, (message,) = update["calls"], update["messages"]

    assert not isinstance(call, tuple)
    assert (call.status, message.status) == (status, "error")  # type: ignore[union-attr]  # a ToolMessage
    assert [event.type for event in events] == ["tool_started", "tool_completed"]


async def test_a_call_that_a_hook_has_changed_still_only_reads(tmp_path: Path) -> None:
    """PL-01a: the editor views, whatever else it can do."""
    args = {"command": "create", "path": "a.txt", "file_text": "no"}
    call = a_call(name="str_replace_editor", args=args)
    task = a_task("plan_exec", workspace=str(tmp_path))
    update = await look(Dispatch(task=task, call=call), a_context())

    assert update["messages"][0].status == "error"  # type: ignore[union-attr]  # a ToolMessage
    assert not (tmp_path / "a.txt").exists()
