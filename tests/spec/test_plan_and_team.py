"""Chapter 7: plans, their review, phases, teams."""

import asyncio
import re
import threading
from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.tools import tool
from langgraph.types import Command
from tests.spec.face import (
    ALLOWED,
    NO_RECOVERY,
    ON_A,
    TEAM,
    UNREVIEWED,
    YES,
    A,
    Daruma,
    Run,
    action,
    call,
    calls,
    command,
    create,
    plan,
    planned,
    refused,
    say,
    statuses,
    view,
)

from daruma import open_postgres

RED: Final[dict[str, Any]] = {"verification": {"commands": ["test -f ok"]}}


# --- PL-01: the plan.


@pytest.mark.parametrize(
    ("phases", "named"),
    [
        ([{"id": "a", "title": "A", "depends_on": ["nowhere"]}], "nowhere"),
        ([{"id": "up", "depends_on": ["down"]}, {"id": "down", "depends_on": ["up"]}], "up -> "),
        ([{"id": "own", "title": "A", "depends_on": ["own"]}], "own -> own"),
    ],
    ids=["unknown", "cycle", "itself"],
)
def test_a_plan_that_can_not_be_ordered_is_refused(phases: list[Any], named: str) -> None:
    """PL-01: unknown dependencies and cycles are named, to the planner and to a person."""
    asked_again = plan(A) | {"expect": [named]}
    run = planned({"plan": [plan(*phases), asked_again], "main": [say()]})
    edit = {"decision": "edit", "plan": {"phases": phases}}

    assert named in run.happened("plan_rejected")[0]["reason"]
    assert named in refused(lambda: run.reply(edit))
    assert [phase["id"] for phase in run.question.value["phases"]] == ["a"]


def test_a_plan_leaves_out_the_commands_that_it_does_not_have() -> None:
    """PL-01: id, goal and phases are there; a command is absent unless it was given."""
    full = ON_A | {"instructions": "With care.", "validation_command": "true"}
    full |= {"rollback_command": "true"}
    run = planned({"plan": [plan(A, full)], "main": [say()] * 2})
    shown = run.question.value
    (proposed,) = run.happened("plan_proposed")
    told = run.reply(YES).result.to_dict()["phases"]

    assert (shown["goal"], proposed["plan"]["goal"]) == ("Mend the parser",) * 2
    assert proposed["plan"]["id"]
    for bare, whole in (shown["phases"], told):
        assert {"validation_command", "rollback_command"}.isdisjoint(bare)
        assert whole | full == whole
    assert [phase["status"] for phase in (*shown["phases"], *told)] == [
        *["pending"] * 2,
        *["completed"] * 2,
    ]


def test_the_planner_looks_before_it_plans(workspace: Path) -> None:
    """PL-01a: tools that read are open to it, none that writes, and no step of a phase is spent."""
    (workspace / "parser.py").write_text("BROKEN = True\n")
    script = {
        "plan": [
            calls(view("parser.py")),
            calls(create("spoiled.txt", "by the planner")),
            plan(A) | {"expect": ["BROKEN = True"]},
        ],
        "main": [say()],
    }
    run = Run(script, workspace=workspace, **UNREVIEWED).ask()

    assert statuses(run) == {"a": "completed"}
    assert not (workspace / "spoiled.txt").exists()
    assert run.result.budgets["think"] == 1


def test_what_is_left_of_a_plan_is_planned_anew() -> None:
    """PL-01b: once a phase has failed; it is reviewed again, and on record."""
    script = {
        "plan": [plan(A, ON_A), plan({"id": "c", "title": "Another way"})],
        "main": [say(""), say("Otherwise.")],
    }
    run = planned(script, **NO_RECOVERY)
    first = run.question.value["spec_review_id"]
    run.reply(YES)

    assert run.question.value["spec_review_id"] != first
    assert statuses(run.reply(YES))["c"] == "completed"
    assert len(run.happened("plan_proposed")) == 2


# --- PL-02, PL-03: the review.


def test_the_first_plan_is_reviewed_before_anything_runs() -> None:
    """PL-02: the question has the plan's id, its goal and its phases; confirm runs it."""
    run = planned({"plan": [plan(A)], "main": [say()]})
    asked = run.question.value
    (proposed,) = run.happened("plan_proposed")

    assert asked["type"] == "spec_review_request"
    assert asked["spec_review_id"] == f"{proposed['plan']['id']}:spec_review"
    assert asked["goal"] == "Mend the parser"
    assert [phase["title"] for phase in asked["phases"]] == ["Mend it"]
    assert run.happened("phase_started") == []
    assert run.snapshot.values.get("result") is None
    assert statuses(run.reply(YES)) == {"a": "completed"}


def test_a_rejected_plan_is_made_anew_and_asked_about_again() -> None:
    """PL-02: with the person's words, under another id; nothing of the old one runs."""
    anew = plan({"id": "small", "title": "Less"}) | {"expect": ["Too much at once"]}
    run = planned({"plan": [plan(A), anew], "main": [say()]})
    first = run.question.value["spec_review_id"]
    run.reply({"decision": "reject", "feedback": "Too much at once"})

    assert run.question.value["spec_review_id"] != first
    assert run.happened("phase_started") == []
    assert statuses(run.reply(YES)) == {"small": "completed"}


def test_an_edited_plan_is_what_runs() -> None:
    """PL-02: the phases of the edit in its order, and none of the old ones."""
    edited = [{"id": "x", "title": "X", "depends_on": ["y"]}, {"id": "y", "title": "Y"}]
    run = planned({"plan": [plan(A)], "main": [say()] * 2})
    run.reply({"decision": "edit", "plan": {"phases": edited}})

    assert [event["phase_id"] for event in run.happened("phase_started")] == ["y", "x"]
    assert set(statuses(run)) == {"x", "y"}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (YES | {"spec_review_id": "other:spec_review"}, "not 'other:spec_review'"),
        ({"decision": "perhaps"}, "has the form"),
        ({"decision": "reject"}, "has the form"),
        (None, "open on thread"),
    ],
    ids=["another review", "no decision", "no feedback", "another question"],
)
def test_a_reply_that_does_not_fit_leaves_the_review_open(reply: Any, why: str) -> None:
    """PL-02: a wrong id is an error; nothing runs, and the right answer still counts."""
    run = planned({"plan": [plan(A)], "main": [say()]})
    asked = run.question
    sent = {asked.id: reply} if reply else {"0" * 32: YES}

    assert why in refused(lambda: run.send(Command(resume=sent)))
    assert run.question.id == asked.id
    assert run.happened("phase_started") == []
    assert statuses(run.reply(YES)) == {"a": "completed"}


def test_a_review_that_nobody_answers_is_parked_and_taken_up_later(postgres_url: str) -> None:
    """PL-03: parked, never failed; each opening of the database stands for a process anew."""
    script = {"plan": [plan(A)], "main": [say()]}
    soon: dict[str, Any] = {"spec_review": {"timeout": 0.001}}
    with open_postgres(postgres_url) as pg:
        asked = planned(script, persistence=pg, **soon).question
    with open_postgres(postgres_url) as pg:
        run = Run(script, persistence=pg, **soon).send(None)
        assert (run.result.status, run.result.error_struct) == ("parked", None)
        assert run.question.value["spec_review_id"] == asked.value["spec_review_id"]
        assert run.question.value["deadline"] is None
        assert run.happened("phase_started") == []
    with open_postgres(postgres_url) as pg:
        run = Run(script, persistence=pg, **soon).reply(YES)
        assert statuses(run) == {"a": "completed"}
        assert run.snapshot.interrupts == ()


def test_a_review_waits_for_half_an_hour_unless_told_otherwise() -> None:
    """PL-03: who looks before that parks nothing."""
    run = planned({"plan": [plan(A)]})
    asked = run.question

    assert asked.value["deadline"] - asked.value["asked_at"] == pytest.approx(1800, abs=1)
    assert run.send(None).question.id == asked.id
    assert run.snapshot.values.get("result") is None


def test_on_the_command_line_a_parked_plan_waits_and_is_confirmed(daruma: Daruma) -> None:
    """PL-03: exit code 3 while it waits, 0 once it was confirmed and done."""
    daruma.configure("spec_review: {timeout: 0.001}\n")
    model = daruma.script(plan=[plan(A)], main=[say("Mended.")])
    args = ["--mode", "plan_exec", "--model", model, "--thread", "t", "--json"]

    assert daruma("run", "Mend it", *args).code == 3
    parked = daruma("resume", "t", "--json")
    assert parked.code == 3
    assert "parked" in daruma("threads").out
    done = daruma("answer", "t", "--confirm", "--json")
    assert (done.code, done.json["status"]) == (0, "completed")


# --- PL-04: what opens is closed.


def _rejected_and_confirmed() -> Run:
    run = planned({"plan": [plan(A)] * 2, "main": [say()]})
    return run.reply({"decision": "reject", "feedback": "No."}).reply(YES)


def _parked() -> Run:
    run = planned({"plan": [plan(A)], "main": [say()]}, spec_review={"timeout": 0.001})
    return run.send(None).reply(YES)


def _failed() -> Run:
    script = {"plan": [plan(A, ON_A)], "main": [say("")], "recovery": [say("No idea.")]}
    return Run(script, **UNREVIEWED).ask()


def _recovered() -> Run:
    main = [{"raise": "down"}, calls(call("stumble", text="x")), say()]
    script = {"plan": [plan(A)], "main": main, "recovery": [action("retry")]}
    at_once: dict[str, Any] = {"fallback_chain": {"recovery": {"wait_seconds": 0}}}
    return Run(script, with_tools=[stumble], **UNREVIEWED, **at_once).ask()


def _member_failed() -> Run:
    script = {
        "plan": [plan(A, {"id": "b", "title": "B"})],
        "main@a": [say("")],
        "main@b": [say()],
        "recovery@a": [say("No idea.")],
    }
    return Run(script, **TEAM).ask()


def stumble(text: str) -> str:
    """Fall over."""
    raise ValueError(text)


@pytest.mark.parametrize(
    ("story", "reviews"),
    [
        (_rejected_and_confirmed, ["reject", "confirm"]),
        (_parked, ["timeout", "confirm"]),
        (_failed, []),
        (_recovered, []),
        (_member_failed, []),
    ],
)
def test_every_milestone_that_opens_is_closed(story: Any, reviews: list[str]) -> None:
    """PL-04: rejected, confirmed, out of time, failed, recovered."""
    run = story()

    assert len(run.happened("phase_started")) > 0
    assert run.unclosed == []
    assert [each["decision"] for each in run.happened("spec_review_completed")] == reviews


async def test_what_was_cancelled_is_closed_once_it_is_resumed() -> None:
    """PL-04: whoever watched it begin sees it end, and sees it end once."""
    lives: list[str] = []

    @tool
    async def wait() -> str:
        """Wait; for ever in the first life."""
        lives.append("one")
        if len(lives) == 1:
            await asyncio.Event().wait()
        return "waited"

    wait.metadata = {"daruma": {"effect": "none"}}
    script = {"plan": [plan(A)], "main": [calls(call("wait")), say()]}
    run = Run(script, with_tools=[wait], **UNREVIEWED)
    request = {"messages": [("user", "Do it")], "mode": "plan_exec"}
    stream = run.graph.astream(request, run.config, stream_mode="custom")
    async for event in stream:
        run.events.append(event)
        if event["type"] == "tool_started":
            break
    await stream.aclose()
    assert run.happened("tool_completed") == run.happened("phase_completed") == []
    await asyncio.to_thread(run.send, None)

    assert run.events[-1]["type"] == "task_completed"
    assert [len(run.happened(end)) for end in ENDS] == [1, 1, 1]
    assert statuses(run) == {"a": "completed"}


ENDS: Final = ("tool_completed", "phase_completed", "task_completed")


# --- PL-05: the order of phases.


def test_phases_run_in_the_order_of_their_dependencies() -> None:
    """PL-05: whatever order the plan names them in; each is told what came before it."""
    order: list[dict[str, Any]] = [
        {"id": "c", "depends_on": ["b"]},
        {"id": "b", "depends_on": ["a"]},
        {"id": "a"},
    ]
    first = say("A was found.")
    script = {"plan": [plan(*order)], "main": [first, say() | {"expect": ["A was found."]}, say()]}
    run = Run(script, **UNREVIEWED).ask()

    assert [event["phase_id"] for event in run.happened("phase_started")] == ["a", "b", "c"]
    assert run.result.status == "completed"


def test_a_failed_phase_fails_what_depends_on_it_and_nothing_else() -> None:
    """PL-05: transitively, without running it; the others go on."""
    top = {"id": "c", "title": "C", "depends_on": ["b"]}
    beside = {"id": "d", "title": "D"}
    script = {"plan": [plan(A, ON_A, top, beside)], "main": [say(""), say("D is done.")]}
    run = Run(script, **UNREVIEWED, **NO_RECOVERY).ask()

    assert statuses(run) == {"a": "failed", "b": "failed", "c": "failed", "d": "completed"}
    assert [event["phase_id"] for event in run.happened("phase_started")] == ["a", "d"]
    assert run.happened("phase_failed")[0]["fallen"] == ("b", "c")
    assert run.result.status == "failed"


# --- PL-06, PL-07: the team.

PAIR: Final = ({"id": "a", "expert": "reader"}, {"id": "b", "expert": "writer"})


@pytest.fixture
def pair(tmp_path: Path) -> dict[str, Any]:
    """Settings of a team of two, whose template is a file."""
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "pair.yaml").write_text(
        "about: Two.\nexperts:\n"
        "- {name: reader, about: Reads., prompt: You read slowly., profile: read_only}\n"
        "- {name: writer, about: Writes., prompt: You write gladly.}\n"
    )
    return TEAM | {"team": {"folders": [str(tmp_path / "teams")], "template": "pair"}}


def test_a_teams_phases_run_at_once() -> None:
    """PL-06: each waits for the other, so that one after the other would never end."""
    meeting = threading.Barrier(2)

    def meet() -> str:
        """Wait until somebody else does."""
        meeting.wait(timeout=20)
        return "met"

    script = {"plan": [plan({"id": "a"}, {"id": "b"})], "main": [calls(call("meet")), say()]}
    run = Run(script, with_tools=[meet], **TEAM).ask()

    assert statuses(run) == {"a": "completed", "b": "completed"}
    assert [text for text in map(str, run.happened("tool_completed")) if "met" not in text] == []


def test_each_phase_has_its_expert_and_a_worktree_of_its_own(
    workspace: Path, pair: dict[str, Any]
) -> None:
    """PL-06: prompt and tools are the expert's; what comes after it sees the work."""
    (workspace / "notes.txt").write_text("notes\n")
    after = {"id": "c", "expert": "writer", "depends_on": ["a", "b"]}
    script = {
        "plan": [plan(*PAIR, after)],
        "main@a": [
            calls(call("search", pattern="notes")) | {"expect": ["You read slowly."]},
            say("Read."),
        ],
        "main@b": [
            calls(command("pwd; echo new > new.txt")) | {"expect": ["You write gladly."]},
            say(),
        ],
        "main@c": [calls(command("pwd; cat new.txt")) | {"expect": ["Read."]}, say()],
    }
    run = Run(script, workspace=workspace, tools=ALLOWED, **pair).ask()
    outputs = "\n".join(each["output"] for each in run.happened("tool_completed"))
    worked = set(re.findall(r"^/\S+$", outputs, re.MULTILINE))
    tools = [
        set(each.tools)
        for word in ("slowly", "gladly")
        for each in run.model.asked()
        if f"You read {word}" in each.text or f"You write {word}" in each.text
    ]

    assert statuses(run) == {"a": "completed", "b": "completed", "c": "completed"}
    assert len(worked - {str(workspace)}) == 2
    assert (workspace / "new.txt").read_text() == "new\n"
    assert "run_command" not in tools[0]
    assert "run_command" in tools[-1]


def test_a_conflict_is_an_outcome_that_the_plan_sees(workspace: Path) -> None:
    """PL-06: the first one's work stays; the other's has a phase that settles it, or fails."""
    (workspace / "line.txt").write_text("line\n")
    after = {"id": "c", "title": "C", "depends_on": ["b"]}
    script = {
        "plan": [plan({"id": "a"}, {"id": "b"}, after)],
        "main@a": [calls(command("echo from a > line.txt")), say()],
        "main@b": [calls(command("echo from b > line.txt")), say()],
        "main@b-merge": [
            calls(command("echo from both > line.txt")) | {"expect": ["line.txt"]},
            say(),
        ],
        "main@c": [calls(command("cat line.txt")), say()],
    }
    run = Run(script, workspace=workspace, tools=ALLOWED, **TEAM).ask()
    (conflict,) = [each for each in run.happened("merge_completed") if each["conflicts"]]

    assert statuses(run) == dict.fromkeys(("a", "b", "b-merge", "c"), "completed")
    assert conflict["phase_id"] == "b"
    assert (workspace / "line.txt").read_text() == "from both\n"


@pytest.mark.parametrize(
    ("does", "named"),
    [
        ("mkdir -p d/dist; echo x > d/dist/app.js", "d/dist"),
        ("rm .gitignore; echo x > 1.log; echo x > 2.log", "1.log, 2.log"),
        ("mkdir node_modules d/.pytest_cache; touch node_modules/x d/.pytest_cache/x", ""),
        ("touch new.txt", ""),
    ],
    ids=["folder", "files", "made anew", "nothing"],
)
def test_what_git_ignores_of_a_members_work_is_named_and_kept(
    workspace: Path, does: str, named: str
) -> None:
    """PL-06: it does not come into the workspace, and nothing of it is lost without a word."""
    (workspace / ".gitignore").write_text("dist/\n*.log\nnode_modules/\n.pytest_cache/\n")
    (workspace / "d").mkdir()
    script = {"plan": [plan({"id": "a"})], "main@a": [calls(command(does)), say()]}
    run = Run(script, workspace=workspace, tools=ALLOWED, **TEAM).ask()
    told = [note for note in run.result.notes if "ot merged" in note]
    kept = [*workspace.parent.glob("data/worktrees/*/*/a-*")]

    assert statuses(run) == {"a": "completed"}
    assert [note.rpartition(": ")[2] for note in told] == [named] * bool(named)
    assert [str(kept[0]) in note for note in told] == [True] * len(kept)
    assert all((kept[0] / path).exists() for path in named.split(", ") if named)


def test_what_was_ignored_later_is_not_the_work_of_who_follows(workspace: Path) -> None:
    """PL-06: it came into the workspace with the lines that ignore it, and is there already."""
    after = {"id": "b", "depends_on": ["a"]}
    does = "echo dist/ > .gitignore; mkdir dist; echo x > dist/app.js"
    script = {
        "plan": [plan({"id": "a"}, after)],
        "main@a": [calls(command(does)), say()],
        "main@b": [calls(command("cat dist/app.js > b.txt")), say()],
    }
    run = Run(script, workspace=workspace, tools=ALLOWED, **TEAM).ask()

    assert (workspace / "b.txt").read_text() == (workspace / "dist" / "app.js").read_text() == "x\n"
    assert [note for note in run.result.notes if "ot merged" in note] == []


def test_work_that_can_not_be_settled_fails_and_is_kept(workspace: Path) -> None:
    """PL-06: no snapshot holds a file of that size, so nobody could settle what became of it."""
    script = {
        "plan": [plan({"id": "a"})],
        "main@a": [calls(command("truncate -s 129M big; echo x > new.txt")), say()],
        "main@a-merge": [say()],
    }
    run = Run(script, workspace=workspace, tools=ALLOWED, **TEAM, **NO_RECOVERY).ask()
    (kept,) = workspace.parent.glob("data/worktrees/*/*/a-*/big")

    assert statuses(run) == {"a": "completed", "a-merge": "failed"}
    assert "big" in (run.result.error_message or "")
    assert [str(kept.parent) in note for note in run.result.notes if "ot merged" in note] == [True]
    assert [*workspace.iterdir()] == []


def test_a_template_is_a_file_and_two_come_with_the_package(pair: dict[str, Any]) -> None:
    """PL-07: one that is not there is an error that names those that are."""
    script = {"plan": [plan({"id": "a"})], "main": [say()]}
    for named in ("coding", "research", "pair"):
        run = Run(script, **pair).ask(f"@team:{named} do it")
        assert [phase.expert for phase in run.result.phases] != [None]
        assert run.result.status == "completed"
    run = Run(script, **pair).ask("@team:nowhere do it")

    assert run.result.status == "failed"
    for named in ("nowhere", "coding", "research", "pair"):
        assert named in run.result.output
