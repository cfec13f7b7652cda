"""Every call of an answer becomes one tool task, in the order of TL-12."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tests.parts import settings

from daruma.state.tool_task import ToolTask
from daruma.tools.registry import Registry
from daruma.tools.resolution import tool_tasks, with_own_ids


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def message(*calls: tuple[str | None, str | None], broken: str | None = None) -> AIMessage:
    """An answer with calls of ``(name, id)`` and maybe one whose arguments are not JSON."""
    invalid = [{"name": "shout", "args": broken, "id": "b", "error": None}] if broken else []
    return AIMessage(
        "",
        id="m1",
        tool_calls=[{"name": name or "", "args": {"text": "x"}, "id": id_} for name, id_ in calls],
        invalid_tool_calls=invalid,
    )


def tasks(answer: AIMessage, *, workspace: bool = False, **policy: Any) -> tuple[ToolTask, ...]:
    given = settings(tools={"policy": policy}).tools
    return tool_tasks(answer, Registry([shout]).visible(given, workspace=workspace), given)


def test_a_known_call_is_ready() -> None:
    """TL-04: resolved exactly, with its arguments."""
    (task,) = tasks(message(("shout", "c1")))

    assert (task.id, task.message_id, task.name, task.requested_name) == (
        "c1",
        "m1",
        "shout",
        "shout",
    )
    assert (task.name_resolution, task.status, task.args) == ("exact", "ready", {"text": "x"})


@pytest.mark.parametrize(("name", "resolution"), [("nope", "unknown"), ("", "missing")])
def test_an_unknown_call_fails_and_says_what_there_is(name: str, resolution: str) -> None:
    """TL-04 and TL-12."""
    (task,) = tasks(message((name, "c1")))

    assert (task.status, task.name_resolution) == ("failed", resolution)
    assert "there are: shout" in task.reason


def test_what_is_not_shown_can_not_be_called() -> None:
    """TL-06: the built-in tools need a workspace."""
    answer = AIMessage("", id="m1", tool_calls=[{"name": "run_tests", "args": {}, "id": "c1"}])

    assert tasks(answer)[0].status == "failed"
    assert tasks(answer, workspace=True)[0].status == "ready"


def test_broken_arguments_fail_with_what_was_written() -> None:
    """TL-12: first of all, before the policy is asked."""
    (task,) = tasks(message(broken='{"text": '), shout="confirm")

    assert task.status == "failed"
    assert task.reason == "the arguments are not valid JSON: '{\"text\": '"


@pytest.mark.parametrize(
    ("rule", "status", "reason"),
    [
        ("allow", "ready", ""),
        ("confirm", "awaiting", ""),
        ("deny", "failed", "denied by policy: shout is not allowed here"),
        ({"decision": "deny", "reason": "too loud"}, "failed", "denied by policy: too loud"),
    ],
)
def test_the_policy_decides_on_what_is_known(rule: Any, status: str, reason: str) -> None:
    """TL-12: deny, allow, confirm."""
    (task,) = tasks(message(("shout", "c1")), shout=rule)

    assert (task.status, task.reason) == (status, reason)


@pytest.mark.parametrize(
    ("rule", "effect"),
    [
        ({"required": False}, "continue"),
        ({"required": True}, "block"),
        ({"required": True, "deny_effect": "continue"}, "continue"),
    ],
)
def test_a_required_approval_blocks_unless_told_otherwise(
    rule: dict[str, Any], effect: str
) -> None:
    """TL-13."""
    (task,) = tasks(message(("shout", "c1")), shout={"decision": "confirm"} | rule)

    assert task.deny_effect == effect


def test_arguments_that_do_not_fit_never_reach_a_person() -> None:
    """TL-12: the schema is checked before ``confirm`` awaits approval."""
    answer = AIMessage(
        "", id="m1", tool_calls=[{"name": "run_command", "args": {"command": ["ls"]}, "id": "c1"}]
    )

    (task,) = tasks(answer, workspace=True)

    assert task.status == "failed"


IDS = st.lists(
    st.sampled_from([None, "", "a", "call_0", "call_1", "call_2", "call_3"]), min_size=1, max_size=5
)


@given(IDS)
def test_every_call_has_an_id_of_its_own(ids: list[str | None]) -> None:
    """Servers leave ids out and repeat them: two calls must not share a result."""
    answer = with_own_ids(message(*(("shout", id_) for id_ in ids)), "m1")

    own = [call["id"] for call in answer.tool_calls]
    assert all(own)
    assert len(set(own)) == len(own)


def test_a_good_id_is_kept() -> None:
    """What the provider wrote is what it gets back; the message gets an id of ours."""
    answer = with_own_ids(message(("shout", "x"), ("shout", "y"), broken="{"), "t/1:answer:0")

    assert [call["id"] for call in answer.tool_calls] == ["x", "y"]
    assert [call["id"] for call in answer.invalid_tool_calls] == ["b"]
    assert answer.id == "t/1:answer:0"


def test_the_given_message_is_not_changed() -> None:
    """Messages may be shared, with a cache for one."""
    given_message = message(("shout", None))
    with_own_ids(given_message, "other")

    assert given_message.id == "m1"
    assert given_message.tool_calls[0]["id"] is None
