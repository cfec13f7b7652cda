"""The gate in an agent of LangChain's: what runs is what was approved, and nothing else."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from tests.graph.middleware.agents import (
    REQUEST,
    THREAD,
    Desk,
    Says,
    agent,
    call,
    calling,
    decided,
)
from tests.graph.middleware.mortal import step

from daruma.graph.middleware import Gate, RepairLadder
from daruma.state.settings import PolicyRule, SettingsError, Tools

ROOT = Path(__file__).parents[3]
CONFIRM = Tools(policy={"pay": "confirm"})
REQUIRED = Tools(policy={"pay": PolicyRule(decision="confirm", required=True)})
PAY = calling(call("pay", amount=5))
BOTH = calling(call("pay", "c1", amount=5), call("read_file", "c2", path="a"))
TWO = calling(call("pay", "c1", amount=5), call("pay", "c2", amount=7))


def guarded(desk: Desk, *answers: Any, settings: Tools = CONFIRM, saver: Any = None) -> Any:
    gate = Gate(desk.tools, settings)
    saver = saver or InMemorySaver()
    return agent(Says(answers=[*answers, "Done."]), desk, [gate], checkpointer=saver)


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_was_approved_runs(is_async: bool) -> None:
    """One question in our form; the calls beside it wait for it, then all run."""
    desk = Desk()
    made = guarded(desk, BOTH)
    asked = await made.ainvoke(REQUEST, THREAD) if is_async else made.invoke(REQUEST, THREAD)
    before = [*desk.done]

    reply = decided(asked)
    out = await made.ainvoke(reply, THREAD) if is_async else made.invoke(reply, THREAD)

    (question,) = asked["__interrupt__"]
    (approval,) = question.value["approvals"]
    assert question.value["type"] == "approval_request"
    assert (approval["tool"], approval["args"]) == ("pay", {"amount": 5})
    assert before == []
    assert sorted(desk.done) == ["paid 5 to shop", "read a"]
    assert out["messages"][-1].text == "Done."


def test_a_reply_for_something_else_is_asked_about_again() -> None:
    """TL-13: a wrong digest, a bare yes and a wrong form change nothing, and say why."""
    desk = Desk()
    made = guarded(desk, PAY)
    asked = made.invoke(REQUEST, THREAD)
    (question,) = asked["__interrupt__"]
    digest = {"approval_id": "c1", "digest": "0" * 64, "decision": "approve"}
    said = []
    for reply in ({"decisions": [digest]}, True, {"decisions": [{"type": "approve"}]}):
        asked = made.invoke(Command(resume={asked["__interrupt__"][0].id: reply}), THREAD)
        said.append(asked["__interrupt__"][0].value["refused"])
    after = [*desk.done]

    made.invoke(decided(asked), THREAD)

    assert "digest" in said[0]
    assert all("a reply to an approval_request has the form" in each for each in said[1:])
    assert after == []
    assert desk.done == ["paid 5 to shop"]
    assert question.value["approvals"] == asked["__interrupt__"][0].value["approvals"]


def test_a_denial_is_told_and_the_loop_goes_on() -> None:
    """TL-15: an optional one."""
    desk = Desk()
    made = guarded(desk, BOTH)

    out = made.invoke(decided(made.invoke(REQUEST, THREAD), "deny", reason="Too much."), THREAD)

    results = [each for each in out["messages"] if isinstance(each, ToolMessage)]
    denied = next(each for each in results if each.tool_call_id == "c1")
    assert desk.done == ["read a"]
    assert (denied.status, "Too much." in denied.text) == ("error", True)
    assert out["messages"][-1].text == "Done."


TODO = calling(call("pay", "c1", amount=5), call("write_todos", "c2", todos=[]))


@pytest.mark.parametrize(
    ("answer", "before"), [(BOTH, []), (TODO, [TodoListMiddleware()])], ids=["own", "another's"]
)
def test_a_required_denial_ends_the_run(answer: Any, before: list[Any]) -> None:
    """TL-15: nothing else of that answer runs, and the model is not asked again.

    Each call has a result, also one of other middleware: else the thread could not be gone on with.
    """
    desk, model = Desk(), Says(answers=[answer, "Done."])
    gate = Gate([desk.pay], REQUIRED)
    made = agent(model, desk, [*before, gate], checkpointer=InMemorySaver())

    out = made.invoke(decided(made.invoke(REQUEST, THREAD), "deny"), THREAD)

    results = [each.tool_call_id for each in out["messages"] if isinstance(each, ToolMessage)]
    assert desk.done == []
    assert len(model.asked) == 1
    assert sorted(results) == ["c1", "c2"]
    assert out["messages"][-1].text == "Stopped: a required approval was denied: pay."


@pytest.mark.parametrize(
    ("said", "args", "done"),
    [
        (PAY, {"amount": 1, "to": "me"}, "paid 1 to me"),
        (calling(call("rest", hours=9)), {}, "rested 1"),
    ],
    ids=["changed", "none left"],
)
def test_what_a_person_wrote_runs_in_place_of_what_the_model_did(
    said: Any, args: Any, done: str
) -> None:
    """TL-14: an edit; the history holds what ran."""
    desk = Desk()
    made = guarded(desk, said, settings=Tools(policy={"pay": "confirm", "rest": "confirm"}))

    out = made.invoke(decided(made.invoke(REQUEST, THREAD), "edit", args=args), THREAD)

    assert desk.done == [done]
    assert out["messages"][1].tool_calls[0]["args"] == args


def test_an_edit_that_does_not_fit_decides_nothing() -> None:
    """The approval stays open, and says why."""
    desk = Desk()
    made = guarded(desk, PAY)

    asked = made.invoke(
        decided(made.invoke(REQUEST, THREAD), "edit", args={"amount": "much"}), THREAD
    )

    (question,) = asked["__interrupt__"]
    assert desk.done == []
    assert "the edit can not be used" in question.value["approvals"][0]["reason"]


def test_approvals_of_one_answer_can_come_one_by_one() -> None:
    """What is still open is asked about again, and nothing runs before all is decided."""
    desk = Desk()
    made = guarded(desk, TWO)
    asked = made.invoke(REQUEST, THREAD)
    first = decided(asked)
    replies: Any = first.resume
    (reply,) = replies.values()
    reply["decisions"] = reply["decisions"][1:]
    rest = made.invoke(first, THREAD)
    between = [*desk.done]

    made.invoke(decided(rest), THREAD)

    assert between == []
    assert [each["approval_id"] for each in rest["__interrupt__"][0].value["approvals"]] == ["c1"]
    assert sorted(desk.done) == ["paid 5 to shop", "paid 7 to shop"]


@pytest.mark.parametrize("policy", [{"*": "deny"}, {"pay": "deny"}])
def test_the_policy_holds_for_tools_that_the_gate_was_not_given(policy: Any) -> None:
    """Other middleware brings tools of its own, and a list may be out of date."""
    desk = Desk()
    gate = Gate([desk.read_file], Tools(policy=policy))

    out = agent(Says(answers=[PAY, "Done."]), desk, [gate]).invoke(REQUEST)

    assert desk.done == []
    assert "denied by policy" in out["messages"][2].text


def test_such_a_tool_can_be_asked_about() -> None:
    """And a person can change its arguments."""
    desk = Desk()
    gate = Gate([desk.read_file], CONFIRM)
    made = agent(Says(answers=[PAY, "Done."]), desk, [gate], checkpointer=InMemorySaver())

    made.invoke(decided(made.invoke(REQUEST, THREAD), "edit", args={"amount": 2}), THREAD)

    assert desk.done == ["paid 2 to shop"]


def test_what_is_not_shown_can_not_be_called() -> None:
    """TL-06: a profile hides a tool from the model, and answers a call of it."""
    desk = Desk()
    profile = Tools(profile="look", profiles={"look": ("read_file",)})
    made = guarded(desk, PAY, settings=profile)

    out = made.invoke(REQUEST, THREAD)

    assert desk.done == []
    assert out["messages"][2].status == "error"


class Meddling(RepairLadder):
    """Changes a call on its way to its tool."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        changed = {**request.tool_call, "args": {"amount": 500}}
        return handler(request.override(tool_call=changed))


def test_what_was_changed_after_the_yes_does_not_run() -> None:
    """The last look is at what is about to run."""
    desk = Desk()
    middleware = [Meddling(), Gate(desk.tools, CONFIRM)]
    model = Says(answers=[PAY, "Done."])
    made = agent(model, desk, middleware, checkpointer=InMemorySaver())

    out = made.invoke(decided(made.invoke(REQUEST, THREAD)), THREAD)

    assert desk.done == []
    assert "what was approved is not what would run now" in out["messages"][2].text


def test_a_rule_about_nothing_is_refused() -> None:
    """When the gate is made, not when it is too late."""
    with pytest.raises(SettingsError):
        Gate(Desk().tools, Tools(policy={"readFile": "confirm"}))


@pytest.mark.long
def test_a_yes_outlives_the_process_that_got_it(postgres_url: str, tmp_path: Path) -> None:
    """Asked here, killed in the middle of the tool after the yes elsewhere, gone on with here."""
    file = tmp_path / "paid"
    asked = step("ask", postgres_url, file)
    command = [sys.executable, "-m", "tests.graph.middleware.mortal", postgres_url, str(file)]
    killed = subprocess.run(command, cwd=ROOT, check=False, timeout=60)
    before = file.exists()

    out = step("go", postgres_url, file)

    assert "__interrupt__" in asked
    assert (killed.returncode, before) == (-signal.SIGKILL, False)
    assert "__interrupt__" not in out
    assert file.read_text() == "5\n"
