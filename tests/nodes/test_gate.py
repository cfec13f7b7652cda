"""One question for all calls that need a person; what was decided is what happens."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from tests.parts import a_call, a_context, a_state, a_task, asked, no_sandbox, settings

from daruma.nodes.gate import gate
from daruma.state.calls import ToolTask, approval_of
from daruma.state.channels import Update
from daruma.state.events import ApprovalCompleted, Event

CALLS = (
    a_call("c1", "awaiting", args={"text": "one"}, reason="loud"),
    a_call("c2", "awaiting", args={"text": "two"}),
    a_call("c3", "ready"),
    a_call("c4", "failed"),
)


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


async def decide(
    calls: tuple[ToolTask, ...], events: list[Event] | None = None, **decisions: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    values = {
        "messages": [HumanMessage("Do it", id="q")],
        "task": a_task(workspace="/w"),
        "calls": calls,
    }
    digests = {call.id: approval_of(call, "/w").digest for call in calls}
    reply = [
        {"approval_id": id_, "digest": digests[id_]}
        | (given if isinstance(given, dict) else {"decision": given})
        for id_, given in decisions.items()
    ]
    return await asked(gate, values, {"decisions": reply}, a_context(tools=[shout], events=events))


def statuses(after: dict[str, Any]) -> dict[str, str]:
    return {call.id: call.status for call in after["calls"]}


async def test_one_question_shows_all_that_wait_and_each_is_decided() -> None:
    """TL-13 to TL-15: in any order; the model is told the reason, and observers what was opened."""
    events: list[Event] = []
    denied = {"decision": "deny", "reason": "too loud"}
    question, after = await decide(CALLS, events, c2=denied, c1="approve")

    assert [a["approval_id"] for a in question["approvals"]] == ["c1", "c2"]
    assert question["approvals"][0]["args"] == {"text": "one"}
    assert question["approvals"][0]["reason"] == "loud"
    assert statuses(after) == {"c1": "ready", "c2": "rejected", "c3": "ready", "c4": "failed"}
    (result,) = after["messages"][1:]
    assert (result.tool_call_id, result.status) == ("c2", "error")
    assert "too loud" in result.text
    assert after.get("failure") is None
    assert events[0].type == "question_closed"
    assert events[1:] == [
        ApprovalCompleted(approval_id="c1", decision="approve"),
        ApprovalCompleted(approval_id="c2", decision="deny"),
    ]


async def test_what_is_not_decided_stays_open() -> None:
    """TL-14: one of several."""
    _, after = await decide(CALLS, c2="approve")

    assert statuses(after)["c1"] == "awaiting"
    assert statuses(after)["c2"] == "ready"


async def test_a_denied_required_call_blocks() -> None:
    """TL-15: only one that is required and whose denial is to block."""
    required = a_call("c1", "awaiting", required=True, deny_effect="block")
    lenient = a_call("c2", "awaiting", required=True, deny_effect="continue")

    _, blocked = await decide((required, lenient), c1="deny")
    _, continued = await decide((required, lenient), c2="deny")
    _, optional = await decide((a_call("c3", "awaiting", deny_effect="block"),), c3="deny")

    assert blocked["failure"].code == "approval_denied"
    assert optional.get("failure") is None
    assert continued.get("failure") is None


async def test_an_edited_call_runs_as_edited() -> None:
    """TL-14: what the person did not want must not run."""
    _, after = await decide(CALLS, c1={"decision": "edit", "args": {"text": "soft"}})

    (edited,) = [call for call in after["calls"] if call.id == "c1"]
    assert (edited.args, edited.status) == ({"text": "soft"}, "ready")


async def test_an_edit_that_does_not_fit_leaves_the_approval_open() -> None:
    """TL-14: it is asked again, and why; neither the old arguments nor the new ones run."""
    events: list[Event] = []
    _, after = await decide(CALLS, events, c1={"decision": "edit", "args": {"txt": "soft"}})

    (edited,) = [call for call in after["calls"] if call.id == "c1"]
    assert (edited.status, edited.args) == ("awaiting", {"text": "one"})
    assert edited.reason.startswith("the edit can not be used: invalid_args")
    assert events[0].type == "question_closed"
    assert events[1:] == [ApprovalCompleted(approval_id="c1", decision="void")]


async def test_a_required_call_that_can_not_run_can_be_denied(tmp_path: Path) -> None:
    """TL-15: a no blocks the task, whatever else there is in its way."""
    required = {"required": True, "deny_effect": "block"}
    command = a_call("c1", "awaiting", name="run_command", args={"command": "make"}, **required)
    values = {"task": a_task(workspace=str(tmp_path)), "calls": (command,)}
    unconfined = replace(a_context(), open_sandbox=no_sandbox)

    question, after = await asked(gate, values, deny("c1"), unconfined)

    assert question["approvals"][0]["sandbox"] == "unavailable"
    assert after["failure"].code == "approval_denied"


async def test_an_edited_call_of_a_tool_that_is_gone_fails() -> None:
    """The graph that a thread is resumed with may have other tools, or show others."""
    gone = a_call("c1", "awaiting", name="whisper", args={"text": "one"})

    events: list[Event] = []
    _, after = await decide((gone,), events, c1={"decision": "edit", "args": {"text": "soft"}})

    assert statuses(after) == {"c1": "failed"}
    assert [each.type for each in events[1:]] == ["approval_completed", "call_refused"]
    assert "no longer there" in after["messages"][-1].text


@tool
def note(text: str, to: str = "") -> str:
    """Note it for oneself."""
    return text + to


note.metadata = {"daruma": {"promote_to": "proclaim", "promote_when": ["to"]}}


def proclaim(text: str, to: str) -> str:
    """Say it to others."""
    return text + to


@pytest.mark.parametrize(
    ("rule", "status"), [("confirm", "awaiting"), ("allow", "ready"), ("deny", "failed")]
)
async def test_an_edit_that_makes_it_another_call_is_no_yes_to_that(rule: str, status: str) -> None:
    """TL-14 and TL-19: what was agreed to was a call of the tool that was shown."""
    call = a_call("c1", "awaiting", name="note", args={"text": "hi"})
    args = {"text": "hi", "to": "all"}
    decision = {"approval_id": "c1", "digest": approval_of(call, None).digest, "decision": "edit"}
    context = a_context(
        tools=[note, proclaim], given=settings(tools={"policy": {"proclaim": rule}})
    )

    _, after = await asked(
        gate,
        {"task": a_task(), "calls": (call,)},
        {"decisions": [decision | {"args": args}]},
        context,
    )

    (edited,) = after["calls"]
    assert (edited.name, edited.status, edited.approved) == ("proclaim", status, "")


async def test_a_command_is_shown_with_its_sandbox(tmp_path: Path) -> None:
    """SA-01: the level that it would run at, beside a tool of the application, which has none."""
    command = a_call("c1", "awaiting", name="run_command", args={"command": "make"})
    confined = replace(a_context(tools=[shout]), open_sandbox=confining)
    values = {"task": a_task(workspace=str(tmp_path)), "calls": (command, CALLS[1])}

    question, _ = await asked(gate, values, deny("c2"), confined)

    shown = [(a["sandbox"], a["not_covered"]) for a in question["approvals"]]
    assert shown == [("landlock", ["metadata"]), ("none", [])]


async def confining() -> Any:
    return SimpleNamespace(level="landlock", not_covered=("metadata",))


def deny(*ids: str) -> dict[str, Any]:
    decisions = [{"approval_id": id_, "digest": "-", "decision": "deny"} for id_ in ids]
    return {"decisions": decisions}


async def test_a_command_that_can_not_be_confined_is_not_asked_about(tmp_path: Path) -> None:
    """SA-01: it would not run; nor does one whose workspace is gone."""
    command = a_call("c1", "awaiting", name="run_command", args={"command": "make"})
    state = a_state(task=a_task(workspace=str(tmp_path)), calls=(command,))
    gone = a_state(task=a_task(workspace=str(tmp_path / "gone")), calls=(command,))

    unconfined = await gate(state, replace(a_context(), open_sandbox=no_sandbox))
    nowhere = await gate(gone, a_context())

    for update in (unconfined, nowhere):
        assert [call.status for call in calls_of(update)] == ["failed"]
        assert update["messages"][0].content.startswith("not run: ")  # type: ignore[union-attr]


def calls_of(update: Update) -> tuple[ToolTask, ...]:
    found = update["calls"]
    assert isinstance(found, tuple)
    return found
