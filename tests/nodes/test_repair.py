"""One model call for what is broken, and nothing is repaired into what was not offered."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from tests.parts import Says, a_context, a_state, a_task, calling, settings, taken

from daruma.nodes.repair import repair
from daruma.state.calls import ToolTask
from daruma.state.channels import State, Update
from daruma.state.events import AnswerAudited, CallRefused, Event
from daruma.state.failure import ModelFailed
from daruma.tools.calls import resolve_calls
from daruma.tools.context import EXACT, visible_tools
from daruma.tools.model_requests import Tokens

ESTIMATE = Tokens()
KEEN = settings(tools={"name_repair_attempts": 2, "call_repair_attempts": 2})


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def repairs(*given: dict[str, Any]) -> str:
    return json.dumps({"repairs": list(given)})


def broken(answer: AIMessage, *steps: Any, **tools: Any) -> State:
    """A state that has just been given an answer whose calls may be repaired."""
    answer = answer.model_copy(update={"id": "m1"})
    context = a_context(tools=[shout], given=settings(tools=tools))
    tasks = resolve_calls(answer, visible_tools(a_task(), context))
    history = [HumanMessage("Do it", id="q"), answer]
    return a_state(messages=history, calls=tasks, steps=list(steps))


def unreadable(raw: str) -> AIMessage:
    return AIMessage(
        "", invalid_tool_calls=[{"name": "shout", "args": raw, "id": "c1", "error": None}]
    )


def calls(update: Update) -> tuple[ToolTask, ...]:
    found = update["calls"]
    assert isinstance(found, tuple)
    return found


async def test_names_are_repaired_in_one_request() -> None:
    """TL-08: the answer names each call; what it got right runs, the rest has failed."""
    ask = Says(repairs({"tool_call_id": "c1", "name": "shout"}))
    state = broken(calling("yell", "cry", text="hi"))

    update = await repair(state, a_context(ask=ask, tools=[shout]))

    assert [(c.name, c.status, c.name_resolution) for c in calls(update)] == [
        ("shout", "ready", "repaired"),
        ("cry", "failed", "unknown"),
    ]
    (request,) = ask.requests
    assert [message.type for message in request] == ["system", "human"]
    assert "yell" in request[1].text
    assert "shout" in request[1].text
    assert (ask.offered, ask.sampled) == ([[]], [EXACT])
    (result,) = update["messages"]
    assert isinstance(result.content, str)
    assert "there is no tool 'cry'" in result.content


@pytest.mark.parametrize("name", ["hidden", "SHOUT", "functions.shout", "", "run_command"])
async def test_only_the_exact_name_of_a_visible_tool_is_taken(name: str) -> None:
    """TL-06 and TL-08."""
    ask = Says(repairs({"tool_call_id": "c1", "name": name}))

    update = await repair(broken(calling("yell", text="hi")), a_context(ask=ask, tools=[shout]))

    assert [c.status for c in calls(update)] == ["failed"]


@pytest.mark.parametrize(
    ("name", "window", "requests"),
    [("shout", 1000, 0), ("shout", 2000, 0), ("shout", 8000, 1)]
    + [("shout_" + "at" * 29, window, 1) for window in (1000, 2000, 8000)],
)
async def test_a_request_keeps_to_the_context(name: str, window: int, requests: int) -> None:
    """CX-01: the calls that there is no room for stay as broken as they are."""
    ask = Says(repairs())
    answer = calling(*([name] * 12), words="some words " * 500)
    given = settings(llm={"context_window_tokens": window})

    update = await repair(broken(answer), a_context(ask=ask, tools=[shout], given=given))

    sizes = [sum(ESTIMATE.of(message.text) for message in each) for each in ask.requests]
    assert all(size <= window for size in sizes)
    assert len(sizes) == requests
    assert {call.status for call in calls(update)} == {"failed"}


async def test_arguments_are_repaired_in_one_request() -> None:
    """TL-09: with the schema in the request; partial success is fine, and the rest is told."""
    events: list[Event] = []
    ask = Says(repairs({"tool_call_id": "c2", "arguments": {"text": "hi"}}))
    state = broken(calling("shout", "shout", words="hi"))

    update = await repair(state, a_context(ask=ask, tools=[shout], events=events))

    (refused,) = [each for each in events if isinstance(each, CallRefused)]
    assert (refused.call_id, refused.args) == ("c1", {"words": "hi"})
    assert [(c.args, c.status, c.repaired_by) for c in calls(update)] == [
        ({"words": "hi"}, "failed", ""),
        ({"text": "hi"}, "ready", "model"),
    ]
    assert "required" in ask.requests[0][1].text


async def test_repaired_arguments_are_checked_like_any_others() -> None:
    """TL-09: by the schema and the policy."""
    misfit = Says(repairs({"tool_call_id": "c1", "arguments": {"still": "wrong"}}))
    good = Says(repairs({"tool_call_id": "c1", "arguments": {"text": "hi"}}))
    strict = settings(tools={"policy": {"shout": "confirm"}})

    wrong = await repair(broken(calling("shout", words="hi")), a_context(ask=misfit, tools=[shout]))
    asked = await repair(
        broken(calling("shout", words="hi")), a_context(ask=good, tools=[shout], given=strict)
    )

    assert [c.status for c in calls(wrong)] == ["failed"]
    assert [c.status for c in calls(asked)] == ["awaiting"]


async def test_names_come_before_arguments() -> None:
    """A call may need both: then there is another round."""
    message = AIMessage(
        "", invalid_tool_calls=[{"name": "yell", "args": "nonsense", "id": "c1", "error": None}]
    )
    ask = Says(repairs({"tool_call_id": "c1", "name": "shout"}))

    update = await repair(broken(message), a_context(ask=ask, tools=[shout]))

    (call,) = calls(update)
    assert (call.name, call.status, call.problem) == ("shout", "repairable", "invalid_json")
    assert update["messages"] == []


async def test_attempts_are_counted_by_the_record() -> None:
    """TL-08 and BU-03: for each answer, names and arguments apart."""
    state = broken(calling("yell", text="hi"))
    first = await repair(state, a_context("no", tools=[shout], given=KEEN))
    again = a_state(
        messages=state.messages, calls=first["calls"], steps=[*taken("think"), *first["steps"]]
    )

    last = await repair(again, a_context("no", tools=[shout], given=KEEN))

    assert [c.status for c in calls(first)] == ["repairable"]
    assert [c.status for c in calls(last)] == ["failed"]
    audits = [update["steps"][0].audit for update in (first, last)]
    assert [a.round.attempt for a in audits if a and a.round] == [1, 2]


async def test_names_and_arguments_have_attempts_of_their_own() -> None:
    """TL-08 and TL-09: a round for the names uses up none of those for the arguments."""
    uneven = settings(tools={"name_repair_attempts": 1, "call_repair_attempts": 2})
    state = broken(calling("yell", words="hi"))
    named = Says(repairs({"tool_call_id": "c1", "name": "shout"}))
    first = await repair(state, a_context(ask=named, tools=[shout], given=uneven))
    again = a_state(messages=state.messages, calls=first["calls"], steps=first["steps"])

    update = await repair(again, a_context("no", tools=[shout], given=uneven))

    (call,) = calls(update)
    (step,) = update["steps"]
    assert call.status == "repairable"
    assert step.audit is not None
    assert step.audit.round is not None
    assert step.audit.round.attempt == 1


async def test_a_repair_that_does_not_fit_is_none() -> None:
    """TL-09: the call stays as it was, to be tried again."""
    ask = Says(repairs({"tool_call_id": "c1", "arguments": {"still": "hi"}}))

    update = await repair(
        broken(calling("shout", words="hi")), a_context(ask=ask, tools=[shout], given=KEEN)
    )

    (call,) = calls(update)
    assert (call.status, call.args, call.repaired_by) == ("repairable", {"words": "hi"}, "")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (calling("shout", words="hi"), "invalid_args: "),
        (unreadable("nonsense"), "invalid_json: "),
        (unreadable("x" * 2000), "too_large: "),
    ],
)
async def test_the_model_is_told_what_is_wrong(answer: AIMessage, problem: str) -> None:
    """TL-09: it mends one thing otherwise than another."""
    ask = Says("no")
    limit = {"max_argument_bytes": 1024}

    await repair(
        broken(answer, **limit), a_context(ask=ask, tools=[shout], given=settings(tools=limit))
    )

    (asked,) = json.loads(ask.requests[0][1].text)["calls"]
    assert asked["problem"].startswith(problem)


@pytest.mark.parametrize("said", [ModelFailed("down"), "", "no JSON", repairs({"x": 1}), "[]"])
async def test_a_model_that_is_of_no_help_leaves_the_calls_as_they_were(said: Any) -> None:
    """TL-09: what can't be repaired is answered with the first error."""
    state = broken(unreadable("nonsense"))

    update = await repair(state, a_context(said, tools=[shout]))

    (call,) = calls(update)
    assert (call.status, call.problem) == ("failed", "invalid_json")
    (step,) = update["steps"]
    assert (step.kind, step.ok) == ("repair", False)


async def test_a_repair_is_on_record() -> None:
    """TL-11: candidates, repaired, failed; in the step, in an event; the history stays."""
    events: list[Event] = []
    ask = Says(repairs({"tool_call_id": "c1", "name": "shout"}))
    state = broken(calling("yell", "cry", text="hi"))

    update = await repair(state, a_context(ask=ask, tools=[shout], events=events))

    (step,) = update["steps"]
    assert step.audit is not None
    assert step.audit.round is not None
    assert (step.audit.round.candidates, step.audit.round.repaired) == (("c1", "c2"), ("c1",))
    assert [(n.requested_name, n.name, n.how) for n in step.audit.names] == [
        ("yell", "shout", "repaired")
    ]
    assert AnswerAudited(audit=step.audit.to_dict()) in events
    assert step.usage is not None
    assert step.usage.role == "repair"


async def test_more_candidates_than_fit_are_marked() -> None:
    """TL-08: the rest fails after the last attempt like what was asked about."""
    few = settings(tools={"name_repair_max_candidates": 1})
    ask = Says(repairs({"tool_call_id": "c1", "name": "shout"}))

    update = await repair(
        broken(calling("yell", "cry", text="hi")), a_context(ask=ask, tools=[shout], given=few)
    )

    (step,) = update["steps"]
    assert step.audit is not None
    assert step.audit.round is not None
    assert (step.audit.round.repaired, step.audit.round.cut) == (("c1",), True)
    assert [c.status for c in calls(update)] == ["ready", "failed"]


@tool
def look(account: str, amount: int = 0) -> str:
    """Look at an account."""
    return f"{account} {amount}"


@tool
def pay(account: str, amount: int) -> str:
    """Pay into an account."""
    return f"{account} {amount}"


look.metadata = {"daruma": {"effect": "none", "promote_to": "pay", "promote_when": ["amount"]}}


async def test_what_a_model_makes_up_is_not_promoted_to_a_call_with_an_effect() -> None:
    """TL-19: a call that only looks may be guessed at, not one that could become another."""
    ask = Says(repairs({"tool_call_id": "c1", "arguments": {"account": "a", "amount": 9}}))
    answer = calling("look", text="of a").model_copy(update={"id": "m1"})
    context = a_context(ask=ask, tools=[look, pay])
    tasks = resolve_calls(answer, visible_tools(a_task(), context))

    update = await repair(a_state(messages=[answer], calls=tasks), context)

    assert [(c.name, c.status) for c in calls(update)] == [("look", "failed")]


async def test_what_a_model_makes_up_is_not_run() -> None:
    """The words of a broken call are its own: no model puts others in their place."""
    ask = Says(repairs({"tool_call_id": "c1", "arguments": {"text": "x" * 80}}))

    update = await repair(
        broken(unreadable("nonsense that says hi")), a_context(ask=ask, tools=[shout])
    )

    assert [c.status for c in calls(update)] == ["failed"]


async def test_nobody_is_asked_about_what_can_not_be_shown_whole() -> None:
    """TL-09: a model could only guess; the call has failed all the same."""
    ask = Says("no")

    update = await repair(broken(unreadable("x" * 20_000)), a_context(ask=ask, tools=[shout]))

    assert ask.requests == []
    assert [c.status for c in calls(update)] == ["failed"]


async def test_what_had_failed_before_is_not_answered_again() -> None:
    """TL-03: one result for each call."""
    answer = calling("shout", "yell", text="hi")
    state = broken(answer, policy={"shout": "deny"})

    update = await repair(state, a_context("no", tools=[shout]))

    assert [c.status for c in calls(update)] == ["failed", "failed"]
    assert [m.tool_call_id for m in update["messages"] if m.type == "tool"] == ["c2"]


async def test_a_call_of_a_tool_that_is_gone_fails() -> None:
    """The graph that a thread is resumed with may have other tools, or show others."""
    update = await repair(broken(unreadable("nonsense")), a_context("no"))

    (call,) = calls(update)
    assert (call.status, call.problem) == ("failed", "invalid_json")
