"""One model call becomes tool tasks, a candidate for the answer, or a failure."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from tests.parts import (
    Says,
    a_context,
    a_failure,
    a_recovery,
    a_state,
    a_task,
    calling,
    settings,
    taken,
)

from daruma.nodes.main import CHAT, main, prompt
from daruma.state.channels import State
from daruma.state.events import AnswerAudited, Event
from daruma.state.failure import ModelFailed
from daruma.state.record import copy_with
from daruma.state.steering import SteeringMessage
from daruma.state.usage import Failover
from daruma.tools.context import Answer


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


def state(**values: Any) -> State:
    return a_state(**{"messages": [HumanMessage("Do it")]} | values)


async def test_an_answer_without_calls_is_the_candidate() -> None:
    """TL-01: under an id of ours, with its cost on record."""
    update = await main(state(steps=taken("think")), a_context("Done."))

    (message,) = update["messages"]
    assert (message.text, message.id) == ("Done.", "t/1:answer:1")
    assert update["calls"] == ()
    (step,) = update["steps"]
    assert (step.kind, step.ok, step.at) == ("think", True, 100.0)
    assert step.usage is not None


async def test_calls_become_tool_tasks() -> None:
    """TL-01 and TL-03: those that can not run are answered at once."""
    given = settings(tools={"name_repair_attempts": 0})
    context = a_context(calling("shout", "nope", text="hi"), tools=[shout], given=given)

    update = await main(state(), context)

    assert [(c.name, c.status) for c in update["calls"]] == [  # type: ignore[union-attr]  # a tuple
        ("shout", "ready"),
        ("nope", "failed"),
    ]
    answer, result = update["messages"]
    assert isinstance(answer, AIMessage)
    assert "there is no tool 'nope'" in result.text


@pytest.mark.parametrize(
    ("before", "fields"),
    [
        ({}, {"failure", "origin"}),
        ({"steps": taken("think")}, set()),
        ({"steps": taken("think"), "origin": a_failure()}, {"failure", "origin"}),
    ],
)
async def test_what_is_empty_is_not_emptied_at_each_step(
    before: dict[str, Any], fields: set[str]
) -> None:
    """Each field that is written costs a row; after the first answer both are there."""
    update = await main(state(**before), a_context("Done."))

    assert update.keys() & {"failure", "origin"} == fields
    assert not [name for name in fields if update[name]]  # type: ignore[literal-required]


async def test_what_a_model_may_repair_is_not_answered_yet() -> None:
    """TL-08: its result comes once it has been tried."""
    update = await main(state(), a_context(calling("nope", text="hi"), tools=[shout]))

    assert [c.status for c in update["calls"]] == ["repairable"]  # type: ignore[union-attr]
    assert len(update["messages"]) == 1


async def test_calls_over_the_limit_are_left_out_and_on_record() -> None:
    """TL-16: in the history, the step and an event."""
    events: list[Event] = []
    given = settings(tools={"max_calls_per_turn": 1})
    context = a_context(
        calling("shout", "shout", text="hi"), tools=[shout], given=given, events=events
    )

    update = await main(state(), context)

    answer = update["messages"][0]
    assert isinstance(answer, AIMessage)
    assert len(answer.tool_calls) == 1
    (step,) = update["steps"]
    assert step.audit is not None
    assert step.audit.left_out is not None
    assert step.audit.left_out.omitted == 1
    assert AnswerAudited(audit=step.audit.to_dict()) in events


async def test_a_good_answer_closes_an_earlier_failure() -> None:
    """The next failure is a first one again."""
    update = await main(state(origin=a_failure()), a_context("Done."))

    assert (update["failure"], update["origin"]) == (None, None)


@pytest.mark.parametrize("blank", ["", " \n"])
async def test_a_blank_answer_is_a_failure_and_leaves_no_message(blank: str) -> None:
    """RE-03: an empty answer in the history would be refused by providers."""
    update = await main(state(), a_context(blank))

    failure = update["failure"]
    assert failure is not None
    assert failure.code == "llm_failure"
    assert "messages" not in update
    assert update["steps"][0].ok is False
    assert failure.message == (
        "the model answered nothing (requests in a row: 1): put the task in other words,"
        " or choose another llm.model"
    )


async def test_a_failing_model_is_a_failure() -> None:
    """The step counts: a model that always fails uses up its budget."""
    update = await main(state(), a_context(ModelFailed("slow", code="timeout")))

    failure = update["failure"]
    assert failure is not None
    assert (failure.code, failure.node) == ("timeout", "main")
    assert [(s.kind, s.ok) for s in update["steps"]] == [("think", False)]


async def test_what_was_asked_for_and_seen_is_on_record() -> None:
    """RE-01 and RE-02: also where the model fails, as its request showed the same."""
    asked = await main(state(), a_context(calling("shout", text="hi"), tools=[shout]))
    (step,) = asked["steps"]
    (message,) = asked["messages"]
    seen = ToolMessage("no", tool_call_id="c1", id="t/1:answer:0:c1", status="error")
    after = state(messages=[message, seen], steps=[step])
    answered = (await main(after, a_context("Done.")))["steps"][0]
    failed = (await main(after, a_context(ModelFailed("slow"))))["steps"][0]

    assert step.signature.startswith("shout#")
    assert (step.saw, step.blockers) == ("", ())
    assert answered.signature == failed.signature == ""
    assert answered.saw.startswith("!")
    assert answered.blockers == ("no",)
    assert (failed.saw, failed.blockers) == (answered.saw, answered.blockers)


async def test_without_budget_no_model_is_asked() -> None:
    """BU-01: what is open was finished before; verification comes next."""
    ask = Says("Done.")
    update = await main(state(steps=taken("think", "think", "think")), a_context(ask=ask))

    assert update == {"calls": ()}
    assert ask.requests == []


@pytest.mark.parametrize(
    ("changes", "offered"),
    [
        ({"mode": "direct_chat"}, []),
        ({"mode": "direct_chat", "workspace": "/w"}, []),
        ({}, ["shout"]),
        (
            {"workspace": "/w"},
            ["str_replace_editor", "search", "run_command", "run_tests", "shout", "todo"],
        ),
    ],
)
async def test_what_is_offered_depends_on_mode_and_workspace(
    changes: dict[str, Any], offered: list[str]
) -> None:
    """MO-01 and TL-06."""
    ask = Says("Done.")
    await main(state(task=a_task(**changes)), a_context(ask=ask, tools=[shout]))

    assert ask.offered == [offered]


async def test_a_tool_that_was_not_offered_does_not_run() -> None:
    """MO-01 and TL-06: in direct chat a call of any tool is unknown."""
    answer = calling("shout", text="hi")
    update = await main(state(task=a_task("direct_chat")), a_context(answer, tools=[shout]))

    assert [call.status for call in update["calls"]] == ["failed"]  # type: ignore[union-attr]  # a tuple


def test_the_prompt_fits_the_task() -> None:
    """Direct chat says nothing of tools; files are spoken of when there are some.

    PL-06: a member is told its role after the task, others of none.
    """
    assert prompt(state(task=a_task("direct_chat"))) == CHAT
    assert "workspace" not in prompt(state())
    assert "relative to the workspace" in prompt(state(task=a_task(workspace="/w")))
    assert prompt(state()).endswith("Task: Do it")
    told = prompt(state(task=a_task(workspace="/w", role="You are the tester.\n")))
    assert told.endswith("Task: Do it\n\nYou are the tester.")


async def test_the_policy_of_the_run_decides() -> None:
    """The settings of the run, not those the graph was built with."""
    given = settings(tools={"policy": {"shout": "confirm"}})
    update = await main(state(), a_context(calling("shout", text="x"), tools=[shout], given=given))

    assert [call.status for call in update["calls"]] == ["awaiting"]  # type: ignore[union-attr]  # a tuple


@pytest.mark.parametrize(
    ("text", "reason", "said"),
    [
        ("half an ans", "length", "cut off (length)"),
        ("half", "content_filter", "cut off (content_filter)"),
        ("\u200b \n", "stop", "answered nothing"),
    ],
)
async def test_an_answer_that_is_none_is_a_failure(text: str, reason: str, said: str) -> None:
    """RE-03: cut off, filtered or showing nothing; never the end of a task."""
    answer = AIMessage(text, response_metadata={"finish_reason": reason})
    update = await main(state(), a_context(answer))

    assert update["failure"] is not None
    assert said in update["failure"].message
    assert "messages" not in update


async def test_what_it_took_to_be_answered_is_on_record() -> None:
    """TL-17: whether a model answered in the end or not."""
    tried = Failover(requested="a", used="b")

    class Fallback(Says):
        async def __call__(self, *args: Any, **options: Any) -> Answer:
            return replace(await super().__call__(*args, **options), failover=tried)

    answered = await main(state(), a_context(ask=Fallback("Done.")))
    failed = await main(state(), a_context(ModelFailed("down", failover=tried)))

    assert [s.audit.failover for s in (*answered["steps"], *failed["steps"]) if s.audit] == [
        tried,
        tried,
    ]


async def test_a_tool_that_recovery_hides_is_not_offered() -> None:
    """RE-04: for one answer."""
    ask = Says("Done.")
    hiding = taken("recover", recovery=a_recovery("alternative-tool", hides="shout"))
    await main(state(steps=hiding), a_context(ask=ask, tools=[shout]))

    assert ask.offered == [[]]


async def test_its_model_calls_are_numbered_by_the_record() -> None:
    """So that a resumed run asks a scripted model for the right turn, in later tasks too."""
    events: list[Event] = []
    await main(state(steps=taken("think", task="t/0")), a_context("Done.", events=events))

    assert [e.to_dict()["model"] for e in events if e.type == "model_call_started"] == ["stub 1"]


@pytest.mark.parametrize("think", [3, 4])
async def test_a_loop_is_a_failure_with_the_last_step_too(think: int) -> None:
    """RE-03, MO-10: green checks are no answer."""
    context = a_context(calling("shout", text="hi"), tools=[shout])
    given = state(task=a_task(limits={"think": think}, verify=True))
    for _ in range(2):
        update = await main(given, context)
        (message,) = update["messages"]
        assert isinstance(message, AIMessage)
        result = ToolMessage("HI", tool_call_id="c1", id=f"{message.id}:c1")
        steps = [*given.steps, *update["steps"]]
        given = replace(given, messages=[*given.messages, message, result], steps=steps)

    assert (await main(given, context))["failure"] is not None


class Silent:
    """Steering that nobody has anything for: to ask it costs a query."""

    def waits(self, _: str) -> bool:
        return False

    async def read(self, _: str) -> list[SteeringMessage]:
        raise AssertionError("it was asked")

    def forget(self, _: str, ids: Collection[str]) -> None:
        raise AssertionError(ids)


async def test_where_nothing_waits_nothing_is_asked() -> None:
    """FA-14: a step costs what it did before anybody could say anything."""
    context = copy_with(a_context("Done."), steering=Silent())

    assert (await main(state(), context))["messages"][0].text == "Done."
