"""A plan is asked for, read, and asked for again when it can not be carried out."""

import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from tests.parts import (
    Says,
    a_call,
    a_context,
    a_failure,
    a_phase,
    a_plan,
    a_task,
    settings,
    taken,
)

from daruma.nodes.plan import plan
from daruma.state import budget
from daruma.state.channels import State
from daruma.state.events import Event
from daruma.state.failure import ModelFailed
from daruma.state.task import Amounts
from daruma.state.usage import Usage

CYCLE = '{"phases": [{"id": "a", "depends_on": ["a"]}]}'
GOOD = '{"phases": [{"id": "a", "title": "A"}]}'


def state(**values: Any) -> State:
    return State(messages=[HumanMessage("Do it")], task=a_task("plan_exec"), **values)


async def test_a_usable_plan_is_proposed() -> None:
    """PL-01: with an id of its own; its cost is on record, and an earlier failure is done with.

    PL-02: it stays in the history, for who is asked for a better one.
    """
    events: list[Event] = []
    update = await plan(state(steps=taken("plan")), a_context(GOOD, events=events))

    proposed = update["plan"]
    assert proposed is not None
    assert proposed.id == "t/1/plan-2"
    assert update["origin"] is None
    (step,) = update["steps"]
    assert (step.kind, step.ok, step.usage is not None) == ("plan", True, True)
    assert "plan_proposed" in [event.type for event in events]
    assert [(each.type, each.text) for each in update["messages"]] == [("ai", GOOD)]


async def test_the_request_holds_goal_place_and_conversation() -> None:
    """What reviewers said is part of the conversation; no tools are offered."""
    ask = Says(GOOD)
    given = State(messages=[HumanMessage("smaller!")], task=a_task("plan_exec", workspace="/w"))
    await plan(given, a_context(ask=ask))

    system, human = ask.requests[0]
    assert isinstance(system, SystemMessage)
    assert "Task: Do it\nWorkspace: /w" in system.text
    assert human.text == "smaller!"
    assert ask.offered == [[]]


async def test_an_unusable_plan_is_told_to_the_model() -> None:
    """PL-01: with the reason, naming the phases; it counts as a failed try."""
    update = await plan(state(), a_context(CYCLE))

    assert "plan" not in update
    assert "failure" not in update
    said, note = update["messages"]
    assert said.text == CYCLE
    assert "depend on each other: a -> a" in note.text
    assert update["steps"][0].ok is False


async def test_the_last_try_ends_the_task() -> None:
    """Three in a row; the code says that the plan was the reason."""
    tries = taken("plan", ok=False) * (budget.MAX_FAILED_PLANS - 1)
    update = await plan(state(steps=tries), a_context(CYCLE))

    failure = update["failure"]
    assert failure is not None
    assert failure.code == "plan_refused"
    assert "messages" not in update


PROSE = "Sorry, I can not make a plan for that."


@pytest.mark.parametrize("mode", ["plan_exec", "team_collab"])
@pytest.mark.parametrize(
    ("answers", "codes"),
    [
        ([PROSE, PROSE], [None, "plan_rejected"]),
        ([PROSE, '{"steps": ["Look"]}'], [None, "plan_rejected"]),
        ([PROSE, CYCLE, PROSE], [None, None, "plan_rejected"]),
        ([PROSE, CYCLE, CYCLE], [None, None, "plan_refused"]),
        ([CYCLE, CYCLE, PROSE], [None, None, "plan_refused"]),
        ([PROSE, GOOD, PROSE, PROSE], [None, None, None, "plan_rejected"]),
        ([PROSE, ModelFailed("down"), PROSE], [None, "llm_failure", "plan_rejected"]),
    ],
)
async def test_who_makes_no_plan_is_asked_once_more(
    answers: list[Any], codes: list[str | None], mode: Any
) -> None:
    """MO-11: with what was wrong, and then the task ends with the planner's words."""
    given = State(messages=[HumanMessage("Do it")], task=a_task(mode))
    for answer, code in zip(answers, codes, strict=True):
        update = await plan(given, a_context(answer))
        failure = update.get("failure")
        assert (failure.code if failure else None) == code
        if answer == PROSE and not failure:
            assert '{"phases": [' in update["messages"][1].text
        if code == "plan_rejected" and failure and answer == PROSE:
            assert PROSE in failure.message
        given = replace(given, steps=[*given.steps, *update["steps"]])


def test_tries_are_counted_since_the_last_usable_plan() -> None:
    """A person's rejection begins the count anew; other tasks do not count."""
    steps = [
        *taken("plan", "plan", ok=False, task="t/0"),
        *taken("plan", ok=False),
        *taken("plan"),
        *taken("plan", "think", "plan", ok=False),
    ]

    assert budget.failed_plans(state(steps=steps)) == 2
    assert budget.failed_plans(state()) == 0


async def test_a_failing_model_is_a_failure() -> None:
    """It goes to recovery, and its try is on record."""
    update = await plan(state(), a_context(ModelFailed("down", cause="APIError")))

    failure = update["failure"]
    assert failure is not None
    assert (failure.node, failure.code, failure.message) == ("plan", "llm_failure", "down")
    assert update["steps"][0].ok is False


async def test_a_plan_that_was_cut_off_is_no_plan() -> None:
    """Half a plan would be carried out as if it were all that was meant."""
    whole = '{"phases": [{"title": "Back up"}]}'
    answer = AIMessage(whole, response_metadata={"finish_reason": "length"})
    update = await plan(state(), a_context(answer))

    assert "plan" not in update
    assert "cut off" in update["messages"][1].text


async def test_a_team_is_asked_to_name_its_experts() -> None:
    """PL-06: with what each is for, and what else matters when phases run side by side."""
    ask = Says('{"phases": [{"id": "a", "expert": "analyst"}]}')
    given = State(messages=[HumanMessage("Do it")], task=a_task("team_collab", template="research"))
    update = await plan(given, a_context(ask=ask))

    prompt = ask.requests[0][0].text
    assert "\n  analyst: Compares, calculates and judges what was gathered.\n" in prompt
    assert "at the same time" in prompt
    assert update["plan"] is not None
    assert update["plan"].phases[0].expert == "analyst"


@pytest.mark.parametrize(
    ("mode", "named", "expert"),
    [
        ("team_collab", "cook", None),
        ("team_collab", "", "developer"),
        ("plan_exec", "cook", "cook"),
    ],
    ids=["unknown", "nobody", "no team"],
)
async def test_who_carries_out_a_phase(mode: Any, named: str, expert: str | None) -> None:
    """PL-06, MO-06: the model is told which experts there are; who is not named is the first one.

    In `plan_exec` nobody asks for a name, and none means anything.
    """
    ask = Says(json.dumps({"phases": [{"id": "a"} | ({"expert": named} if named else {})]}))
    given = State(messages=[HumanMessage("Do it")], task=a_task(mode))
    update = await plan(given, a_context(ask=ask))

    proposed = update.get("plan")
    assert (proposed.phases[0].expert if proposed else None) == expert
    assert ("expert" in ask.requests[0][0].text) == (mode == "team_collab")
    if proposed is None:
        said = "phase 'a' has an unknown expert 'cook'; there are: developer, tester, writer"
        assert said in update["messages"][1].text


async def test_a_team_that_is_gone_is_a_failure() -> None:
    """Its file may have been removed since the task began; no model is asked."""
    ask = Says(GOOD)
    given = State(messages=[HumanMessage("Do it")], task=a_task("team_collab", template="gone"))
    failure = (await plan(given, a_context(ask=ask)))["failure"]

    assert failure is not None
    assert failure.code == "bad_request"
    assert "no team template 'gone'" in failure.message
    assert ask.requests == []


@pytest.mark.parametrize(
    ("workspace", "snapshots", "told"),
    [("/w", True, True), ("/w", False, False), (None, True, False)],
)
async def test_a_rollback_by_snapshot_is_offered_where_there_can_be_one(
    workspace: str | None, snapshots: bool, told: bool
) -> None:
    """RO-06: it takes files, and settings that keep snapshots."""
    ask = Says(GOOD)
    given = State(messages=[HumanMessage("x")], task=a_task("plan_exec", workspace=workspace))
    await plan(given, a_context(ask=ask, given=settings(rollback={"snapshots": snapshots})))

    assert ('`"rollback": "snapshot"`' in ask.requests[0][0].text) is told


async def test_what_a_look_has_left_open_is_answered() -> None:
    """TL-03: a hook may have made a call one that a person would be asked about."""
    left = (a_call("a", "done"), a_call("b", "awaiting"))
    update = await plan(state(calls=left), a_context(GOOD))

    assert update["calls"] == ()
    assert [message.type for message in update["messages"]] == ["tool", "ai"]
    assert update["messages"][0].tool_call_id == "b"  # type: ignore[union-attr]  # a ToolMessage


async def test_planning_anew_stops_where_the_budget_is_spent() -> None:
    """BU-04, PL-01b: nobody is asked, and the task ends as its failure has it end."""
    ask, limits = Says(GOOD), {"spend": Amounts(tokens=1)}
    failed = a_phase("a", status="failed", failure=a_failure("verification_failed"))
    old = replace(a_plan(failed, current="a"), first_failed="a")
    usage = Usage(role="main", model="m", input_tokens=2)
    given = replace(state(plan=old, steps=taken("look", usage=usage)), task=a_task(limits=limits))

    update = await plan(given, a_context(ask=ask))

    assert ask.requests == []
    assert "failure" not in update
    assert [(step.kind, step.signature) for step in update["steps"]] == [("plan", budget.GAVE_UP)]
