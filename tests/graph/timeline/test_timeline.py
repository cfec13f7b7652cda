"""A thread as a timeline: what is told of runs that ended, wait, failed, or were thinned."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, phases, say

from daruma.graph.build import build_graph
from daruma.graph.run import NothingToSee
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.timeline import Moment, Timeline

GIVEN = settings(evolution={"enabled": False})
EDIT = {"command": "create", "path": "a.txt", "file_text": "A\n"}


def a_run(script: dict[str, Any], postgres: Postgres | None = None, **given: Any) -> Run:
    sections = GIVEN.model_dump() | given
    model = RecordingModel(script=script)
    saver = None if postgres else memory()
    return Run(
        script,
        graph=build_graph(model, [], settings(**sections), postgres, checkpointer=saver),
    )


def timeline(run: Run) -> Timeline:
    told: Timeline = run.graph.timeline(run.config)
    assert told == asyncio.run(run.graph.atimeline(run.config))
    return told


def kinds(told: Timeline) -> list[str]:
    return [each.kind for each in told.moments if each.kind not in ("savepoint", "note")]


def test_a_run_is_told_in_order(tmp_path: Path) -> None:
    """Request, model call, tool call with its diff and output, checks, result."""
    edit = calls(call("str_replace_editor", **EDIT))
    given: dict[str, Any] = {"verification": {"enabled": True, "commands": ["test -f a.txt"]}}
    run = a_run({"main": [edit, say("Done.")]}, **given)
    run.ask("Make a", workspace=str(tmp_path))

    told = timeline(run)

    assert kinds(told) == ["request", "model", "tool", "model", "check", "result"]
    tool, check = told.moments[3], told.moments[5]
    assert (tool.title, tool.ok, tool.diff) == (
        "create a.txt",
        True,
        "--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+A",
    )
    assert (check.title, check.note[:6], check.ok) == ("$ test -f a.txt", "exit 0", True)
    assert (told.status, told.goal, told.workspace) == ("completed", "Make a", str(tmp_path))
    assert told.tokens == sum(each.tokens for each in told.moments) > 0
    assert [each.at for each in told.moments] == sorted(each.at for each in told.moments)
    assert all(each.timed for each in told.moments)


@pytest.mark.parametrize(
    ("asked", "title", "ok", "note"),
    [
        (call("runCommand", command="false"), "$ false", False, ""),
        ({"name": "run_command", "args": "{'command': 'true',}"}, "$ true", True, "{'command'"),
        (call("run_command", command="touch a", write=True), "$ touch b", True, "$ touch a"),
    ],
    ids=["another name", "repaired", "edited"],
)
def test_a_call_is_told_as_it_was_executed(
    asked: Any, title: str, ok: bool, note: str, tmp_path: Path
) -> None:
    """TL-11, TL-14: with how it was asked for; one beside it that did not run took no time."""
    broken = call("run_command", command={"a": 1})
    run = a_run({"main": [calls(broken, asked), say()]}, tools={"call_repair_attempts": 0})
    run.ask(workspace=str(tmp_path))
    if run.snapshot.interrupts:
        (open_,) = run.question.value["approvals"]
        edit = {"approval_id": open_["approval_id"], "digest": open_["digest"], "decision": "edit"}
        run.reply({"decisions": [edit | {"args": {"command": "touch b", "write": True}}]})

    (refused, told) = [each for each in timeline(run).moments if each.kind == "tool"]

    assert (told.title, told.ok, told.detail.splitlines()[0]) == (
        title,
        ok,
        f"command: {title[2:]}",
    )
    assert note in told.note
    assert told.seconds
    assert (refused.ok, refused.seconds, refused.note) == (False, None, "")


def test_as_text_each_moment_is_one_line() -> None:
    """It is printed on terminals: nothing in it is obeyed there, and no key is told."""
    key = "sk-" + "a1b2c3d4" * 4
    evil = Moment(kind="tool", title=f"$ cat <<END\nfalse line\n\x1b[2J {key}", ok=True, seconds=2)
    told = Timeline(thread="a\nb", status="completed", goal="Do\n\x1b[1mit", moments=(evil,))

    head, goal, line = str(told).splitlines()

    assert (head, goal) == ("thread a b: completed", "Do \\x1b[1mit")
    assert line.endswith("✓ tool       $ cat <<END false line \\x1b[2J [key] (2.0 s)")


def test_the_path_is_what_the_stream_told(tmp_path: Path) -> None:
    """Every node that ran, in the order that it ran in."""
    two = calls(call("str_replace_editor", **EDIT), call("str_replace_editor", **EDIT))
    run = a_run({"main": [two, say("Done.")]}).ask(workspace=str(tmp_path))

    told = timeline(run)

    assert [node for visit in told.path for node in [visit.node] * visit.times] == run.nodes


def test_a_review_and_its_answers_are_told() -> None:
    """The question while it is open; each answer once it is given."""
    second = {"id": "p2", "title": "See", "depends_on": ["p1"]}
    plan = phases({"id": "p1", "title": "Look"}, second)
    script = {"plan": [plan, plan], "main": [say("Looked."), say("Seen.")]}
    run = a_run(script).ask(mode="plan_exec")

    waiting = timeline(run)
    run.reply({"decision": "reject", "feedback": "Look twice"}).reply({"decision": "confirm"})
    told = timeline(run)

    assert waiting.status == "waiting"
    assert waiting.moments[-1].title == "Is this plan right? waits for an answer"
    assert waiting.questions[0]["value"]["type"] == "spec_review_request"
    reviews = [each for each in told.moments if each.kind == "review"]
    assert [(each.ok, each.output) for each in reviews] == [(False, "Look twice"), (True, "")]
    assert [each.title for each in told.moments if each.kind == "phase"] == [
        "Phase 1 of 2: Look",
        "Phase 1 of 2 completed: Look",
        "Phase 2 of 2: See",
        "Phase 2 of 2 completed: See",
    ]


def test_an_approval_is_told_with_its_decision(tmp_path: Path) -> None:
    """Asked before the call, which then has no result but the denial."""
    run = a_run({"main": [calls(call("run_command", command="touch x")), say("Well.")]})
    run.ask(workspace=str(tmp_path))
    run.decide(**{run.question.value["approvals"][0]["approval_id"]: "deny"})

    told = timeline(run)

    (asked,) = [each for each in told.moments if each.kind == "approval"]
    (tool,) = [each for each in told.moments if each.kind == "tool"]
    assert (asked.title, asked.ok) == ("May this run: $ touch x denied", False)
    assert (tool.ok, "denied" in tool.output) == (False, True)


def failed_phase(workspace: Path, **commands: str) -> Run:
    """A plan whose one phase fails, and what is run then."""
    script = {"plan": [phases({"id": "a", **commands})], "main": [{"raise": "timeout"}] * 9}
    run = a_run(script | {"recovery": [say("?")] * 5}, spec_review={"enabled": False})
    return run.ask(workspace=str(workspace), mode="plan_exec")


@pytest.mark.parametrize(
    ("undone", "validation", "told"),
    [
        ({}, "false", ["check"]),
        ({"rollback_command": "true"}, "true", ["check"]),
        ({"rollback_command": "true"}, "false", ["check", "check", "rollback"]),
    ],
)
def test_what_was_not_rolled_back_is_told_as_no_rollback(
    tmp_path: Path, undone: dict[str, str], validation: str, told: list[str]
) -> None:
    """A phase that has nothing to undo, or was found valid, has its validation alone."""
    run = failed_phase(tmp_path, validation_command=validation, **undone)
    assert [each.kind for each in timeline(run).moments if each.node == "rollback"] == told


def test_the_commands_of_a_rollback_are_told_with_what_they_said(tmp_path: Path) -> None:
    """VE-10: in the timeline, where they were run, and in the result's phase."""
    run = failed_phase(
        tmp_path,
        validation_command="echo not valid; exit 1",
        rollback_command="echo was undone",
    )

    told = [each for each in timeline(run).moments if each.node == "rollback"]

    assert [(each.kind, each.output, each.ok) for each in told] == [
        ("check", "not valid", False),
        ("check", "was undone", True),
        ("rollback", "", True),
    ]
    (phase,) = run.result.to_dict()["phases"]
    assert phase["validation_run"]["output"] == "not valid"
    assert phase["rollback_run"]["output"] == "was undone"


@pytest.fixture
def postgres(postgres_url: str) -> Any:
    with open_postgres(postgres_url) as opened:
        yield opened


def a_team(postgres: Postgres, workspace: Path) -> Run:
    pair = ({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    edit = calls(call("str_replace_editor", **EDIT))
    script = {"plan": [phases(*pair)], "main@a": [edit, say("A.")], "main@b": [say("B.")]}
    run = a_run(script, postgres, spec_review={"enabled": False})
    return run.ask(mode="team_collab", workspace=str(workspace))


@pytest.mark.long
def test_members_are_told_by_their_own_record(postgres: Postgres, tmp_path: Path) -> None:
    """Their calls stand in the timeline of the task, with their phase, and nothing twice."""
    told = timeline(a_team(postgres, tmp_path))

    said = [(each.member, each.title) for each in told.moments if each.kind == "model"]
    assert sorted(said) == [("a", "A."), ("a", "asked for str_replace_editor"), ("b", "B.")]
    assert [each.node for each in told.path if each.member == "a"][:3] == ["main", "tool", "main"]
    assert told.whole


@pytest.mark.long
def test_a_thinned_thread_tells_what_is_left(postgres: Postgres, tmp_path: Path) -> None:
    """Steps, phases and the result stay; the path says that it is not whole."""
    run = a_team(postgres, tmp_path)
    before = timeline(run)

    postgres.checkpointer.prune(["t"])
    told = timeline(run)

    assert (told.whole, told.path) == (False, ())
    assert {"request", "plan", "model", "phase", "result"} <= {*kinds(told)}
    assert (told.tokens, told.status) == (before.tokens, "completed")
    unchecked = "nothing to verify: no checks are known for this workspace"
    assert {each.title for each in told.moments if each.kind == "check"} == {unchecked}


@pytest.mark.long
def test_a_sealed_database_tells_the_same(postgres_url: str, empty_postgres_url: str) -> None:
    """What is read beside the states is unsealed like them."""
    plan, found = phases({"id": "p1", "title": "Look"}), []
    for url, key in ((postgres_url, None), (empty_postgres_url, "ab" * 32)):
        with open_postgres(url, key=key) as opened:
            run = a_run({"plan": [plan], "main": [say("Seen.")]}, opened).ask(mode="plan_exec")
            found.append(timeline(run.reply({"decision": "confirm"})))

    assert found[0].nodes == found[1].nodes
    assert [each.title for each in found[0].moments] == [each.title for each in found[1].moments]


def test_an_earlier_checkpoint_tells_what_was_then() -> None:
    """What came later, or was forked off, is no part of it."""
    run = a_run({"main": [say("One."), say("Two.")]}).ask("First")
    then = run.snapshot.config
    run.ask("Second")

    told = run.graph.timeline(then)

    assert kinds(told) == ["request", "model", "result"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"configurable": {"thread_id": "nobody"}}, "there is no thread 'nobody'"),
        ({}, "say which thread"),
    ],
)
def test_a_thread_that_is_not_there_is_one_clear_line(config: Any, said: str) -> None:
    """Nothing is made up for it."""
    run = a_run({"main": []})

    with pytest.raises(NothingToSee, match=said):
        run.graph.timeline(config)


def test_a_graph_without_memory_says_so() -> None:
    """It has no threads to look at."""
    graph = build_graph(RecordingModel(script={}), settings=GIVEN)

    with pytest.raises(NothingToSee, match="persistence="):
        graph.timeline({"configurable": {"thread_id": "t"}})


def test_times_and_budgets_are_those_of_the_record() -> None:
    """It began with its first moment, and what it may spend stands beside what it spent."""
    run = a_run({"main": [say("One.")]}, budgets={"tokens": 50_000}).ask()

    told = timeline(run)

    assert (told.started_at, told.updated_at) == (told.moments[0].at, told.moments[-1].at)
    assert told.started_at < told.updated_at
    assert told.spent["think"] == (1, run.graph.settings.budgets.max_steps)
    assert told.spent["tokens"] == (told.tokens, 50_000)


def test_a_stop_that_is_tried_again_is_told_behind_its_question() -> None:
    """BU-04: nobody granted anything, and that is what it says."""
    look = calls(call("search", pattern="x")) | {"usage": {"input": 900, "output": 100}}
    run = a_run({"main": [look]}, budgets={"tokens": 500})
    run.ask("Do it").reply({"answer": "stop"})
    run.graph.reopen(run.config)
    run.send(None)

    told = [(each.kind, each.title) for each in timeline(run).moments][3:]

    assert [kind for kind, _ in told] == ["question", "failure", "note", "question"]
    again = "the task's budget was spent: stopped, then tried again under those of now"
    assert told[2] == ("note", again)


# --- What was told live is on record, too.


def a_choice(run: Run, ws: Path) -> None:
    """A rollback that failed, and what a person said to that."""
    run.ask(workspace=str(ws), mode="plan_exec").reply({"answer": "keep"})


def merges_that_meet(run: Run, ws: Path) -> None:
    run.ask(workspace=str(ws), mode="team_collab")


def files_that_change(run: Run, ws: Path) -> None:
    """Somebody else writes a file while a call waits for its approval, which is void then."""
    run.ask(workspace=str(ws))
    (ws / "theirs.txt").write_text("theirs\n")
    run.approve().approve()


def steps_that_run_out(run: Run, ws: Path) -> None:
    run.ask(workspace=str(ws), mode="plan_exec").reply({"answer": "Look at b."})


def writes(text: str) -> dict[str, Any]:
    return calls(call("str_replace_editor", **EDIT | {"file_text": text}))


ROLLS_BACK = {"id": "a", "validation_command": "false", "rollback_command": "exit 3"}
LOOKS = calls(call("search", pattern="x"))
RECORDED: dict[str, tuple[Any, dict[str, Any], dict[str, Any], list[tuple[Any, ...]]]] = {
    "a failed rollback": (
        a_choice,
        {"plan": [phases(ROLLS_BACK)], "main": [say("")] * 9, "recovery": [say("?")] * 9},
        {"spec_review": {"enabled": False}},
        [
            ("failure", "rollback_failed: ", "what was rolled back is kept as ", False),
            ("question", "rollback_failed: ", "keep", None),
            ("recovery", "it goes on as a person said", "", True),
        ],
    ),
    "work that met other work": (
        merges_that_meet,
        {
            "plan": [phases({"id": "a"}, {"id": "b"})],
            "main@a": [writes("A"), say("A.")],
            "main@b": [writes("B"), say("B.")],
            "main": [writes("C"), say("C.")],
        },
        {"spec_review": {"enabled": False}},
        [
            ("phase", "Phase 2 of 3 completed: ", "", False),
        ],
    ),
    "a yes that was void": (
        files_that_change,
        {"main": [calls(call("run_command", command="touch x")), say("Well.")]},
        {},
        [
            ("approval", "May this run: $ touch x void: what it was about has changed", "", False),
            ("note", "1 file has changed since this thread last looked, and not by", "", False),
            ("approval", "May this run: $ touch x approved", "", True),
        ],
    ),
    "steps that ran out": (
        steps_that_run_out,
        {"plan": [phases({"id": "a"})], "main": [LOOKS, LOOKS, say("Well.")]},
        {
            "budgets": {"think": 2},
            "fallback_chain": {"recovery": {"ask": True}},
            "spec_review": {"enabled": False},
        },
        [
            ("question", "There is no answer yet", "Look at b.", None),
            ("note", "the phase's steps were used up: as many are granted once more", "", True),
            ("model", "Well.", "", True),
        ],
    ),
}


@pytest.mark.parametrize("case", RECORDED)
def test_what_was_told_live_is_on_record(case: str, tmp_path: Path) -> None:
    """FA-04, PL-06, RO-05, RO-07, TL-13a: in its order, and an answer with its question."""
    go, script, given, wanted = RECORDED[case]
    run = a_run(script, **given)
    go(run, tmp_path)

    told = timeline(run).moments
    found = [
        next(i for i, m in enumerate(told) if (m.kind, m.ok) == (kind, ok) and title in m.title)
        for kind, title, _, ok in wanted
    ]

    assert found == sorted(found), [(each.kind, each.title, each.ok) for each in told]
    assert all(out in told[i].output for i, (*_, out, _) in zip(found, wanted, strict=True))
    assert "Look at b." not in [each.title for each in told]
