"""Chapter 7, continued: a planner that looks, a plan that lives, the model's own steps."""

from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.tools import StructuredTool, tool
from tests.spec.face import (
    NO_RECOVERY,
    ON_A,
    TEAM,
    UNREVIEWED,
    YES,
    A,
    Run,
    call,
    calls,
    command,
    create,
    plan,
    planned,
    raw,
    say,
    statuses,
    view,
)

# --- PL-01a: the planner looks.


def test_what_the_planner_may_call_only_reads(workspace: Path) -> None:
    """PL-01a: by what a tool declares; nobody is asked, and each call has one result."""
    (workspace / "a.txt").write_text("alpha\n")

    def write_home(text: str) -> str:
        """Write home."""
        raise AssertionError(text)

    @tool
    def weather(place: str) -> str:
        """Tell the weather."""
        return f"rain in {place}"

    weather.metadata = {"daruma": {"effect": "none"}}
    script = {
        "plan": [
            calls(view("a.txt", "v"), call("weather", "w", place="Rome"), command("ls", "c"))
            | {"expect_tools": ["str_replace_editor", "search", "weather"]},
            calls(
                call("write_home", "h", text="hi"),
                create("b.txt", "no", "n"),
                raw("vieww", "{", "x"),
            ),
            plan(A) | {"expect": ["alpha", "rain in Rome"]},
        ],
        "main": [say()],
    }
    run = Run(script, workspace=workspace, with_tools=[write_home, weather], **UNREVIEWED).ask()

    assert statuses(run) == {"a": "completed"}
    assert {"alpha" in run.outputs["v"], run.outputs["w"] == "rain in Rome"} == {True}
    for refused_ in ("c", "h", "n", "x"):
        assert run.outputs[refused_].startswith(("not run", "there is no tool"))
    assert not (workspace / "b.txt").exists()
    assert {"run_command", "write_home", "todo"}.isdisjoint(run.model.asked("plan")[0].tools)
    assert [run.result.budgets[kind] for kind in ("look", "plan", "think")] == [2, 1, 1]


def test_a_planner_has_no_helpers(workspace: Path) -> None:
    """PL-01a: helpers are the task's own; a planner that asks for one plans all the same."""
    script = {"plan": [calls(call("delegate", "d", task="Look.")), plan(A)], "main": [say()]}
    run = Run(script, workspace=workspace, team={"delegate": True}, **UNREVIEWED).ask()

    assert run.outputs["d"].startswith("there is no tool")
    assert "delegate" not in run.model.asked("plan")[0].tools
    assert statuses(run) == {"a": "completed"}


@pytest.mark.parametrize(("look", "asked"), [(0, 1), (2, 3)])
def test_looks_have_a_budget_of_their_own(look: int, asked: int, workspace: Path) -> None:
    """PL-01a: once it is used up, the plan is asked for without tools; with 0, from the start."""
    turns = [calls(view("."))] * look + [plan(A) | {"expect_tools": []}]
    script = {"plan": turns, "main": [say()]}
    run = Run(script, workspace=workspace, budgets={"look": look}, **UNREVIEWED).ask()

    assert statuses(run) == {"a": "completed"}
    assert len(run.model.asked("plan")) == asked


def test_a_review_shows_what_was_looked_at(workspace: Path) -> None:
    """PL-01a: a line for each call."""
    (workspace / "a.txt").write_text("alpha\n")
    search = call("search", pattern="alpha")
    script = {"plan": [calls(view("a.txt"), search), plan(A)], "main": [say()]}
    run = planned(script, workspace=workspace)

    assert run.question.value["looked_at"] == ["str_replace_editor view a.txt", "search alpha"]
    assert "looked at: str_replace_editor view a.txt" in str(run.question.value["action_requests"])


def test_a_model_that_takes_no_tools_plans_as_before(workspace: Path) -> None:
    """PL-01a: it is asked again without any."""
    refusal = {"raise": "this model does not support tools", "status": 400}
    script = {"plan": [refusal, plan(A) | {"expect_tools": []}], "main": [say()]}
    run = Run(script, workspace=workspace, **UNREVIEWED).ask()

    assert statuses(run) == {"a": "completed"}
    assert run.unclosed == []


# --- PL-01b: a plan that lives.

FAILS: Final = {"id": "bad", "title": "Bad"}
ON_BAD: Final = {"id": "after", "title": "After", "depends_on": ["bad"]}
GOOD: Final = {"id": "good", "title": "Good"}


def test_completed_phases_stay_and_are_not_run_again() -> None:
    """PL-01b: the planner sees what each phase came to; new phases may depend on what is done."""
    anew = {"id": "bad", "title": "Otherwise", "depends_on": ["good"]}
    seen = ["It was good.", "answered nothing", "- after (not begun)"]
    script = {
        "plan": [plan(GOOD, FAILS, ON_BAD), plan(anew) | {"expect": seen}],
        "main": [say("It was good."), say(""), say("Otherwise done.")],
    }
    run = Run(script, **UNREVIEWED, **NO_RECOVERY).ask()
    (replaced,) = run.result.to_dict()["replaced"]
    (event,) = run.happened("plan_replaced")

    assert run.result.status == "completed"
    assert statuses(run) == {"good": "completed", "bad-2": "completed"}
    assert {phase["id"]: phase["status"] for phase in replaced["phases"]} == {
        "good": "completed",
        "bad": "failed",
        "after": "failed",
    }
    assert event["why"] == replaced["why"]
    assert event["why"].startswith("phase 'bad' failed: the model answered nothing")
    assert [each["phase_id"] for each in run.happened("phase_started")] == ["good", "bad", "bad-2"]
    assert run.unclosed == []


def _ends(run: Run) -> list[tuple[Any, ...]]:
    """How each phase ended, without the times that its checks took."""
    return [
        (p.status, p.outcome, p.answer, p.failure, p.verification and p.verification.passed)
        for p in run.result.phases
    ]


@pytest.mark.parametrize(
    "turns",
    [
        [],
        [{"raise": "down", "status": 401}],
        [say("No."), say("No plan.")],
        [plan(ON_A)] * 3,
        [plan(GOOD)] * 3,
    ],
    ids=["script at its end", "model error", "prose", "refused", "ids of what is done"],
)
@pytest.mark.parametrize("mode", ["plan_exec", "team_collab"])
def test_without_a_usable_plan_the_task_ends_as_it_would_have(
    turns: list[Any], mode: str, workspace: Path
) -> None:
    """PL-01b: same status, error, checks and phases."""
    first = plan(GOOD, FAILS, ON_BAD)
    script = {"plan": [first, *turns], "main": [say(), say("")]}
    if mode == "team_collab":
        script = {"plan": [first, *turns], "main@good": [say()], "main@bad": [say("")]}
    settings: dict[str, Any] = UNREVIEWED | NO_RECOVERY | {"mode": mode, "workspace": workspace}
    settings |= {"verification": {"commands": ["true"]}}
    expected_run = Run(script, **settings, budgets={"replan": 0}, thread="without").ask()
    without = expected_run.result
    run = Run(script, **settings).ask()
    error, expected = run.result.error_struct, without.error_struct

    assert len(run.model.asked("plan")) > 1
    assert (run.result.status, run.result.output) == (without.status, without.output)
    assert error is not None
    assert expected is not None
    assert error.to_dict() == expected.to_dict()
    assert run.result.checked == without.checked
    assert [each.id for each in run.result.phases] == [each.id for each in without.phases]
    assert _ends(run) == _ends(expected_run)
    assert run.unclosed == []


def test_what_no_window_holds_is_not_planned_anew() -> None:
    """PL-01b: a request that no compaction brings under the budget; what was pending stays so."""

    def note(text: str) -> str:
        """Note it."""
        return text

    many = [{"id": f"p{n}", "title": "T" * 100} for n in range(30)]
    script = {
        "plan": [plan(*many)],
        "main": [*[say("x y " * 500)] * 3, calls(call("revise_plan", why="No."))],
        "compress": [say("All went well.")] * 9,
    }
    window: dict[str, Any] = {"llm": {"context_window_tokens": 3000}}
    run = Run(script, with_tools=[note], **UNREVIEWED, **window).ask()

    assert run.nodes[-4:] == ["compress", "plan", "emergency", "finish"]
    assert [*statuses(run).values()] == [*["completed"] * 3, "failed", *["pending"] * 26]
    assert str(run.result.error_message).startswith("No.\n")
    assert run.unclosed == []


@pytest.mark.parametrize(("replan", "plans"), [(0, 1), (1, 2), (2, 3)])
def test_planning_anew_has_a_quota(replan: int, plans: int) -> None:
    """PL-01b: the last plan's failure is the task's."""
    script = {"plan": [plan(FAILS)] * 9, "main": [say("")] * 9}
    run = Run(script, budgets={"replan": replan}, **UNREVIEWED, **NO_RECOVERY).ask()

    assert run.result.status == "failed"
    assert len(run.model.asked("plan")) == plans
    assert len(run.result.replaced) == replan


def test_a_new_plan_is_reviewed_with_why_and_can_be_rejected_and_edited() -> None:
    """PL-01b: nothing of what is done is lost on the way, as PL-02 has it."""
    script = {
        "plan": [plan(GOOD, FAILS), plan("Worse"), plan("Better") | {"expect": ["Too bad"]}],
        "main": [say(), say(""), say("Best.")],
    }
    run = planned(script, **NO_RECOVERY).reply(YES)
    first = run.question.value
    run.reply({"decision": "reject", "feedback": "Too bad"})
    second = run.question.value
    edit = {
        "phases": [*second["phases"][:1], {"id": "best", "title": "Best", "depends_on": ["good"]}]
    }
    run.reply({"decision": "edit", "plan": edit})

    assert first["why"].startswith("phase 'bad' failed: ")
    assert [phase["status"] for phase in first["phases"]] == ["completed", "pending"]
    assert [phase["title"] for phase in second["phases"]] == ["Good", "Better"]
    assert len({first["spec_review_id"], second["spec_review_id"]}) == 2
    assert statuses(run) == {"good": "completed", "best": "completed"}
    assert len(run.result.replaced) == 1


def test_a_plan_that_is_contradicted_is_planned_anew_at_once(workspace: Path) -> None:
    """PL-01b: what was pending is replaced, not run; the person sees why."""
    no = call("revise_plan", why="There is no parser.")
    script = {
        "plan": [plan(A, {"id": "b", "title": "B"}), plan({"id": "c", "title": "C"})],
        "main": [calls(no) | {"expect_tools": ["revise_plan"]}, say("C is done.")],
    }
    run = planned(script, workspace=workspace).reply(YES)
    why = run.question.value["why"]
    run.reply(YES)

    assert why == "phase 'a' failed: There is no parser."
    assert statuses(run) == {"c": "completed"}
    assert [each["phase_id"] for each in run.happened("phase_started")] == ["a", "c"]
    assert "revise_plan" not in run.model.asked()[-1].tools
    assert run.happened("recovery_started") == []
    assert [p.status for p in run.result.replaced[0].phases] == ["failed", "pending"]


def test_a_member_can_say_no_to_the_plan(workspace: Path) -> None:
    """PL-01b: others of its round end their work, which stays."""
    no = call("revise_plan", why="There is no parser.")
    script = {
        "plan": [
            plan({"id": "a"}, {"id": "b"}, {"id": "z", "depends_on": ["b"]}),
            plan({"id": "c", "depends_on": ["b"]}),
        ],
        "main@a": [calls(no)],
        "main@b": [say("B.")],
        "main@c": [say("C.") | {"expect": ["B."]}],
    }
    run = Run(script, workspace=workspace, **TEAM).ask()

    assert statuses(run) == {"b": "completed", "c": "completed"}
    assert [p.status for p in run.result.replaced[0].phases] == ["failed", "completed", "pending"]


@pytest.mark.parametrize("name", ["todo", "revise_plan", "revisePlan"])
def test_a_tool_of_ones_own_takes_the_name(name: str, workspace: Path) -> None:
    """PL-01b: as TL-05 has it, it is the one that runs, and means nothing else."""

    def own(why: str) -> str:
        """Say why."""
        return f"own: {why}"

    given = StructuredTool.from_function(own, name=name)
    script = {"plan": [plan(A)], "main": [calls(call(name, "c", why="x")), say()]}
    run = Run(script, workspace=workspace, with_tools=[given], **UNREVIEWED).ask()

    assert statuses(run) == {"a": "completed"}
    assert run.outputs["c"] == "own: x"
    assert run.happened("todo_changed") == []


def test_an_alias_of_ones_own_takes_the_name(workspace: Path) -> None:
    """TL-05: settings that were right before there was such a tool still are."""
    aliases = {"name_aliases": {"todo": "str_replace_editor"}}
    script = [calls(call("todo", "c", command="view", path=".")), say()]
    run = Run(script, workspace=workspace, tools=aliases).ask()

    assert run.result.status == "completed"
    assert "todo" not in run.model.asked()[0].tools
    assert not run.outputs["c"].startswith("Error")


# --- PL-01b: the model's own steps.


def test_the_models_own_steps_are_watched(workspace: Path) -> None:
    """PL-01b: each call gives the whole list, nobody is asked, and nothing is changed by it."""

    def todo(*statuses_: str) -> dict[str, Any]:
        items = [{"text": f"step {n}", "status": each} for n, each in enumerate(statuses_, 1)]
        return calls(call("todo", items=items))

    script = [todo("in_progress", "pending"), todo("done", "in_progress"), say()]
    run = Run(script, workspace=workspace).ask()
    told = [[each["status"] for each in event["items"]] for event in run.happened("todo_changed")]

    assert told == [["in_progress", "pending"], ["done", "in_progress"]]
    assert run.result.status == "completed"
    timeline = run.graph.timeline(run.config)
    assert "steps: 1 of 2 done, now: step 2" in str(timeline)
    assert [each["status"] for each in timeline.todo] == ["done", "in_progress"]
