"""What a person must approve does not run before, and what was denied does not run at all."""

from typing import Any

import pytest
from langgraph.types import Command
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, illegal, say, unclosed

from daruma.state.interrupts import ReplyRefused

ASKED = [calls(call(id_="one", text="1"), call(id_="two", text="2")), say()]


@pytest.fixture
def heard() -> list[str]:
    """What the tool was really called with."""
    return []


def start(heard: list[str], rule: Any = "confirm", script: Any = None) -> Run:
    def shout(text: str) -> str:
        """Say it loudly."""
        heard.append(text)
        return text.upper()

    given = settings(tools={"policy": {"shout": rule}})
    return Run(script or ASKED, settings=given, tools=[shout]).ask()


def results(run: Run) -> list[tuple[str, str]]:
    return [(m.tool_call_id, m.status) for m in run.messages if m.type == "tool"]


def check(run: Run) -> None:
    """What holds at every end."""
    assert illegal(run.messages) == []
    assert [problem for request in run.model.requests for problem in illegal(request)] == []
    assert unclosed(run.events) == []


def test_nothing_runs_before_it_is_approved(heard: list[str]) -> None:
    """TL-12: calls that need nobody wait for those that do."""
    run = start(heard)

    assert run.nodes == ["intake", "main", "__interrupt__"]
    assert heard == []
    assert run.state.result is None


def test_all_may_be_approved_at_once(heard: list[str]) -> None:
    """TL-14: in any order."""
    run = start(heard).decide(two="approve", one="approve")

    assert run.nodes[3:] == ["gate", "tool", "tool", "main", "finish"]
    assert sorted(heard) == ["1", "2"]
    assert run.result.status == "completed"
    check(run)


def test_approvals_may_come_one_by_one(heard: list[str]) -> None:
    """TL-14: out of order; what is not decided is asked again, under the same id and digest."""
    run = start(heard)
    first = run.question.value["approvals"]
    run.decide(two="approve")
    left = run.question.value["approvals"]
    run.decide(one="approve")

    assert left == first[:1]
    assert run.nodes[2:] == [
        *("__interrupt__", "gate", "__interrupt__", "gate"),
        *("tool", "tool", "main", "finish"),
    ]
    assert sorted(heard) == ["1", "2"]
    check(run)


def test_an_optional_denial_goes_on(heard: list[str]) -> None:
    """TL-15: the model is told, and answers."""
    run = start(heard).decide(one="deny", two="approve")

    assert heard == ["2"]
    assert sorted(results(run)) == [("one", "error"), ("two", "success")]
    assert run.result.status == "completed"
    check(run)


def test_all_denied_is_told_without_a_tool(heard: list[str]) -> None:
    """TL-15: the tool node is not entered."""
    run = start(heard).decide(one="deny", two="deny")

    assert run.nodes[3:] == ["gate", "main", "finish"]
    assert heard == []
    check(run)


def test_a_required_denial_blocks(heard: list[str]) -> None:
    """TL-15: nothing is run after it, and every call has its result."""
    run = start(heard, {"decision": "confirm", "required": True}).decide(one="deny")

    assert run.nodes[3:] == ["gate", "settle", "emergency", "finish"]
    assert heard == []
    assert run.result.status == "blocked"
    assert run.result.error_struct is not None
    assert run.result.error_struct.error_code == "approval_denied"
    assert sorted(results(run)) == [("one", "error"), ("two", "error")]
    check(run)


def test_a_required_denial_may_go_on(heard: list[str]) -> None:
    """TL-13: ``deny_effect: continue``."""
    rule = {"decision": "confirm", "required": True, "deny_effect": "continue"}
    run = start(heard, rule).decide(one="deny", two="approve")

    assert run.result.status == "completed"
    check(run)


def test_a_later_denial_blocks_what_was_approved(heard: list[str]) -> None:
    """TL-15: approved one by one, the first does not run when the second is denied."""
    run = start(heard, {"decision": "confirm", "required": True})
    run.decide(one="approve").decide(two="deny")

    assert heard == []
    assert run.result.status == "blocked"
    check(run)


def test_an_edited_call_runs_as_edited(heard: list[str]) -> None:
    """TL-14: and never as it was."""
    run = start(heard, script=[calls(call(id_="one", text="loud")), say()])
    (approval,) = run.question.value["approvals"]
    decision = {"approval_id": "one", "digest": approval["digest"], "decision": "edit"}
    run.reply({"decisions": [decision | {"args": {"text": "soft"}}]})

    assert heard == ["soft"]
    check(run)


@pytest.mark.parametrize(
    "change", [{"digest": "x"}, {"approval_id": "other"}, {"args": {"text": "never shown"}}]
)
def test_an_answer_to_something_else_changes_nothing(
    heard: list[str], change: dict[str, Any]
) -> None:
    """TL-13: a wrong id or digest, or other arguments than shown; the approval stays open."""
    run = start(heard)
    before = run.snapshot
    (approval, _) = run.question.value["approvals"]
    decision = {"approval_id": "one", "digest": approval["digest"], "decision": "approve"}

    with pytest.raises(ReplyRefused):
        run.send(Command(resume={run.question.id: {"decisions": [decision | change]}}))
    assert run.snapshot == before
    assert heard == []


def test_equal_ids_in_a_later_answer_are_asked_anew(heard: list[str]) -> None:
    """Servers repeat ids of calls: an old approval does not speak for a new call."""
    again = [calls(call(id_="one", text=text)) for text in ("first", "second")]
    run = start(heard, script=[*again, say()]).decide(one="approve")

    assert heard == ["first"]
    assert run.question.value["approvals"][0]["args"] == {"text": "second"}
    run.decide(one="approve")
    assert heard == ["first", "second"]
    check(run)


def test_arguments_of_a_wrong_type_do_not_end_the_task(tmp_path: Any) -> None:
    """TL-12: they are the model's mistake; it is told, and the loop goes on."""
    script = {
        "main": [calls(call("run_command", command=["ls"])), say()],
        "repair": [say("I can not say what was meant.")],
    }
    run = Run(script)
    run.ask(workspace=str(tmp_path))

    assert run.result.status == "completed"
    check(run)
