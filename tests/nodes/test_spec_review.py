"""A person confirms, rejects or edits the plan before anything is done."""

from typing import Any

from tests.parts import a_context, a_phase, a_plan, a_task, asked, refusal, settings, taken

from daruma.nodes.spec_review import review_request, spec_review
from daruma.state.channels import State
from daruma.state.events import Event, SpecReviewCompleted

REVIEW_ID = "t/1/plan-1:spec_review"


async def review(reply: object, events: list[Event] | None = None) -> Any:
    values = {"task": a_task("plan_exec"), "plan": a_plan(a_phase("a"))}
    return await asked(spec_review, values, reply, a_context(events=events))


async def test_the_question_shows_the_plan_and_a_confirmed_one_stays() -> None:
    """PL-02: its id is ``{plan_id}:spec_review``; the review's end is told (PL-04)."""
    events: list[Event] = []
    question, after = await review({"decision": "confirm", "spec_review_id": REVIEW_ID}, events)

    assert question["type"] == "spec_review_request"
    assert question["id"] == question["spec_review_id"] == REVIEW_ID
    assert question["goal"] == "Do it"
    assert question["phases"] == [a_phase("a").to_dict()]
    assert [p.id for p in after["plan"].phases] == ["a"]
    assert events[0].type == "question_closed"
    assert events[1:] == [SpecReviewCompleted(spec_review_id=REVIEW_ID, decision="confirm")]


def test_the_deadline_counts_from_when_the_plan_was_made() -> None:
    """PL-03: so that asking again does not push it back; Unix seconds."""
    state = State(plan=a_plan(a_phase("a")), steps=taken("plan"))

    assert review_request(state, 1800.0)["deadline"] == 1800.0


async def test_a_rejected_plan_is_gone_and_the_reason_told() -> None:
    """PL-02: the model plans anew with the feedback before its eyes."""
    _, after = await review({"decision": "reject", "feedback": "smaller"})

    assert after["plan"] is None
    assert after["messages"][-1].text == "The plan was rejected: smaller. Plan anew."


async def test_an_edited_plan_takes_the_place() -> None:
    """PL-02: under the same id, with the goal that the person gave."""
    plan = {"goal": "Better", "phases": [{"id": "b", "title": "B", "rollback_command": "undo"}]}
    _, after = await review({"decision": "edit", "plan": plan})

    edited = after["plan"]
    assert (edited.id, edited.goal) == ("t/1/plan-1", "Better")
    assert [(p.id, p.rollback_command) for p in edited.phases] == [("b", "undo")]


async def test_the_timeout_is_a_setting() -> None:
    """PL-03."""
    context = a_context(given=settings(spec_review={"timeout": 5}))
    values = {"task": a_task("plan_exec"), "plan": a_plan(a_phase("a")), "steps": taken("plan")}
    question, _ = await asked(spec_review, values, {"decision": "confirm"}, context)

    assert question["deadline"] == 5.0


def team_values(**changes: Any) -> dict[str, Any]:
    plan = a_plan(a_phase("a", expert="writer"))
    return {"task": a_task("team_collab", **changes), "plan": plan}


async def test_the_question_names_the_experts_of_a_team() -> None:
    """PL-06: who edits the plan has to know whom there is; in other modes there is nobody."""
    question, _ = await asked(spec_review, team_values(), {"decision": "confirm"})
    alone, _ = await review({"decision": "confirm"})

    assert question["experts"] == ["developer", "tester", "writer"]
    assert "experts" not in alone


async def test_an_edited_plan_of_a_team_names_its_experts() -> None:
    """PL-06: else the reply does not fit, and the question stays open."""
    edit = {"decision": "edit", "plan": {"phases": [{"id": "b", "expert": "tester"}]}}
    _, after = await asked(spec_review, team_values(), edit)
    edit["plan"] = {"phases": [{"id": "b", "expert": "cook"}]}

    assert after["plan"].phases[0].expert == "tester"
    _, after = await asked(spec_review, team_values(), edit)
    assert "unknown expert 'cook'; there are: developer, tester" in refusal(after)


async def test_a_review_outlives_the_file_of_its_team() -> None:
    """Then those whom the plan names are the experts there are."""
    question, after = await asked(
        spec_review, team_values(template="gone"), {"decision": "confirm"}
    )

    assert question["experts"] == ["writer"]
    assert after["plan"].phases[0].expert == "writer"
