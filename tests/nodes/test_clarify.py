"""In a plan a person is asked, and what they say reaches the model."""

from tests.parts import a_clarification, a_context, a_phase, a_plan, a_task, asked

from daruma.nodes.clarify import clarify
from daruma.state.events import ClarificationResolved, Event


async def test_the_answer_is_told_and_the_question_closed() -> None:
    """CO-01: the next call of the model goes on with what is known; the events are a pair."""
    events: list[Event] = []
    values = {
        "task": a_task("plan_exec"),
        "plan": a_plan(a_phase("a"), current="a"),
        "clarification": a_clarification(),
    }
    question, after = await asked(clarify, values, {"answer": "hello"}, a_context(events=events))

    assert question["type"] == "question"
    assert question["question"] == "What should I shout?"
    assert question["context"] == "shout needs text"
    assert after["messages"][-1].text == "hello"
    assert after["clarification"].status == "resumed"
    assert events[0].type == "question_closed"
    assert events[1:] == [ClarificationResolved(how="resumed", target_action="shout")]


async def test_what_calls_it_off_is_no_answer() -> None:
    """CO-02: the model is told the words alone, and nothing is filled in for it."""
    events: list[Event] = []
    values = {
        "task": a_task("plan_exec"),
        "plan": a_plan(a_phase("a"), current="a"),
        "clarification": a_clarification(),
    }
    _, after = await asked(clarify, values, {"answer": "never mind"}, a_context(events=events))

    assert after["messages"][-1].text == "never mind"
    assert after["clarification"].status == "stale"
    assert events[0].type == "question_closed"
    assert events[1:] == [ClarificationResolved(how="stale", target_action="shout")]
