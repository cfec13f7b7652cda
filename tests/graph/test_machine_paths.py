"""Scripted runs of the whole machine: which nodes they pass, and how they end."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.parts import a_task, settings
from tests.scripted_runs import (
    Run,
    against,
    call,
    calls,
    fall,
    illegal,
    phases,
    say,
    shout,
    unclosed,
)

from daruma.graph.history import UndoRefused
from daruma.state.errors import WorkspaceBusy
from daruma.state.mode import Mode
from daruma.state.task import Status
from daruma.tools.files import workspace_locked
from daruma.tools.snapshots import Restored, RestoreRefused

pytestmark = pytest.mark.sampled(24)

BLANK, DOWN = say(""), {"raise": "the provider is down"}
CHECK = {
    "budgets": {"preset": "frugal"},
    "verification": {"commands": ["test -f ok"]},
    "tools": {"policy": {"run_command": "allow"}},
}
FIX = calls(call("run_command", command="touch ok"))
FRUGAL = {"budgets": {"preset": "frugal"}}
UNREVIEWED = {"spec_review": {"enabled": False}} | FRUGAL
RED = {"verification": {"commands": ["false"]}} | UNREVIEWED
NO_IDEA = say("I have no idea.")
AT_ONCE = {"fallback_chain": {"recovery": {"wait_seconds": 0}}}
CORRECTED: dict[str, Any] = {
    "strategy": "parameter-adjustment",
    "tool_name": "shout",
    "parameters": {"text": "hello"},
}
CYCLE = phases({"id": "a", "depends_on": ["a"]})
SORRY = say("Sorry, I can not make a plan for that.")
TWICE = {"main": [say(), say()], "reflect": [say("I did too little.")]}
REORDERED = {"id": "b", "title": "B"}
FAILED_TWICE = "intake plan begin main verify reflect main verify settle"


@dataclass(frozen=True)
class Scenario:
    """A script, what it is asked and answered, and where that must lead; ``|`` is a pause."""

    nodes: str
    status: Status
    script: Any
    ask: dict[str, Any] = field(default_factory=dict)
    replies: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    output: str = ""


def undoing(**commands: str) -> dict[str, Any]:
    return {"plan": [phases({"id": "a", **commands})]} | TWICE


PATHS = {
    "direct chat": Scenario(
        "intake main finish", "completed", [say("Hello.")], {"mode": "direct_chat"}
    ),
    "parallel tools": Scenario(
        "intake main tool tool tool main verify settle finish",
        "completed",
        [calls("shout", "shout", "shout"), say()],
    ),
    "an unknown tool": Scenario(
        "intake main repair main verify settle finish",
        "completed",
        {"main": [calls("nope"), say("I can't.")], "repair": [say('{"repairs": []}')]},
    ),
    "a repaired name": Scenario(
        "intake main repair tool main verify settle finish",
        "completed",
        {
            "main": [calls(call("sshout", id_="c")), say()],
            "repair": [{"json": {"repairs": [{"tool_call_id": "c", "name": "shout"}]}}],
        },
    ),
    "broken arguments": Scenario(
        "intake main tool main verify settle finish",
        "completed",
        [{"calls": [{"name": "shout", "args": '{"text": '}, call()]}, say()],
    ),
    "a tool that raises": Scenario(
        "intake main tool tool main verify settle finish",
        "completed",
        [calls("fall", "shout"), say()],
    ),
    "steps used up": Scenario(
        "intake main tool main tool main verify settle emergency finish",
        "max_steps_exceeded",
        [calls("shout")] * 2,
        settings={"budgets": {"max_steps": 2}},
        output="Stopped: exceeded budgets.max_steps (2).",
    ),
    "steps of the turn used up": Scenario(
        "intake main tool main verify settle emergency finish",
        "max_steps_exceeded",
        [calls("shout")],
        settings={"budgets": {"max_steps_per_turn": 1}},
        output="Stopped: exceeded max_steps_per_turn.",
    ),
    "react verified on request": Scenario(
        "intake main verify settle finish",
        "completed",
        [say()],
        settings={"verification": {"enabled": True, "commands": ["true"]}},
    ),
    "thinks used up are verified, and are no answer": Scenario(
        "intake plan begin main tool main verify settle emergency finish",
        "max_steps_exceeded",
        {"plan": [phases("one")], "main": [calls("shout")]},
        {"mode": "plan_exec"},
        settings=UNREVIEWED
        | {"budgets": {"think": 1, "replan": 0}, "verification": {"commands": ["true"]}},
        output="Stopped: exceeded budgets.think (1).",
    ),
    "a loop in the last step is a failure": Scenario(
        "intake plan begin main tool main tool main tool main recovery settle emergency finish",
        "failed",
        {"plan": [phases("one")], "main": [calls("shout")] * 4},
        {"mode": "plan_exec"},
        settings=UNREVIEWED
        | {"budgets": {"think": 4, "replan": 0}, "verification": {"commands": ["true"]}},
        output="shout, 3 times with the same results",
    ),
    "a loop in the last step, with nothing to verify": Scenario(
        "intake main tool main tool main recovery settle emergency finish",
        "failed",
        [calls("shout")] * 3,
        settings={"budgets": {"max_steps": 3}},
        output="shout, 2 times with the same results",
    ),
    "a plan confirmed, red, reflected on, green": Scenario(
        "intake plan | spec_review begin main verify reflect main tool main verify settle finish",
        "completed",
        {"plan": [phases("one")], "main": [say(), FIX, say("Fixed.")], "reflect": [say("Oh.")]},
        {"mode": "plan_exec"},
        ({"decision": "confirm"},),
        CHECK,
        "Fixed.",
    ),
    "put back first, then reflected on": Scenario(
        "intake plan begin main verify main verify reflect main verify settle emergency finish",
        "gave_up_after_reflections",
        {"plan": [phases("one")], "main": [say()] * 3, "reflect": [say("Hm.")]},
        {"mode": "plan_exec"},
        settings=RED | {"budgets": {"reflect": 1, "replan": 0}},
    ),
    "a reflection that fails": Scenario(
        "intake plan begin main verify reflect main tool main verify settle finish",
        "completed",
        {"plan": [phases("one")], "main": [say(), FIX, say("Fixed.")], "reflect": [DOWN]},
        {"mode": "plan_exec"},
        settings=CHECK | UNREVIEWED,
    ),
    "red without reflections": Scenario(
        "intake plan begin main verify main verify settle emergency finish",
        "failed",
        {"plan": [phases("one")], "main": [say(), say()]},
        {"mode": "plan_exec"},
        settings=RED | {"budgets": {"reflect": 0, "replan": 0}},
    ),
    "a plan rejected and made anew": Scenario(
        "intake plan | spec_review plan | spec_review begin main verify settle finish",
        "completed",
        {"plan": [phases("big"), phases("small") | {"expect": ["rejected: smaller"]}]}
        | {"main": [say()]},
        {"mode": "plan_exec"},
        ({"decision": "reject", "feedback": "smaller"}, {"decision": "confirm"}),
    ),
    "a plan edited": Scenario(
        "intake plan | spec_review begin main verify settle begin main verify settle finish",
        "completed",
        {"plan": [phases("one")]}
        | {"main": [say() | {"expect": ["of 2: B"]}, say() | {"expect": ["of 2: A"]}]},
        {"mode": "plan_exec"},
        (
            {
                "decision": "edit",
                "plan": {
                    "phases": [{"id": "a", "title": "A", "depends_on": ["b"]}, REORDERED],
                },
            },
        ),
    ),
    "no usable plan": Scenario(
        "intake plan plan plan emergency finish",
        "failed",
        {"plan": [CYCLE, CYCLE | {"expect": ["a -> a"]}, CYCLE]},
        {"mode": "plan_exec"},
    ),
    "a planner that refuses": Scenario(
        "intake plan plan emergency finish",
        "failed",
        {"plan": [SORRY, SORRY | {"expect": ["no JSON object of the form"]}, phases("late")]},
        {"mode": "plan_exec"},
    ),
    "a team's planner that writes prose once": Scenario(
        "intake plan plan begin member merge finish",
        "completed",
        {"plan": [say("First look, then fix."), phases("one")], "main": [say()]},
        {"mode": "team_collab"},
        settings=UNREVIEWED,
    ),
    "a planner that is down": Scenario(
        "intake plan recovery plan recovery emergency finish",
        "failed",
        {"plan": [DOWN, DOWN], "recovery": [NO_IDEA]},
        {"mode": "plan_exec"},
    ),
    "a planner that comes back": Scenario(
        "intake plan recovery plan begin main verify settle finish",
        "completed",
        {"plan": [DOWN, phases("one")], "recovery": [NO_IDEA], "main": [say()]},
        {"mode": "plan_exec"},
        settings=UNREVIEWED,
    ),
    "a phase that fails, and those that depend on it": Scenario(
        f"{FAILED_TWICE} rollback begin main verify settle emergency finish",
        "gave_up_after_reflections",
        {
            "plan": [
                phases(
                    {"id": "a", "validation_command": "false"},
                    {"id": "b", "depends_on": ["a"]},
                    {"id": "c"},
                )
            ]
        }
        | TWICE
        | {"main": [say()] * 3},
        {"mode": "plan_exec"},
        settings=UNREVIEWED,
    ),
    "a validation without a rollback": Scenario(
        f"{FAILED_TWICE} rollback emergency finish",
        "gave_up_after_reflections",
        undoing(validation_command="false"),
        {"mode": "plan_exec"},
        settings=RED,
    ),
    "a rollback that works": Scenario(
        f"{FAILED_TWICE} rollback emergency finish",
        "gave_up_after_reflections",
        undoing(rollback_command="touch undone"),
        {"mode": "plan_exec"},
        settings=RED,
    ),
    "a rollback that fails": Scenario(
        f"{FAILED_TWICE} rollback emergency finish | hold emergency finish",
        "gave_up_after_reflections",
        undoing(rollback_command="false", validation_command="false"),
        {"mode": "plan_exec"},
        ({"answer": "keep"},),
        settings=RED,
    ),
    "a rollback that fails, by a snapshot then": Scenario(
        f"{FAILED_TWICE} rollback emergency finish | hold rollback emergency finish",
        "gave_up_after_reflections",
        undoing(rollback_command="false"),
        {"mode": "plan_exec"},
        ({"answer": "restore"},),
        settings=RED,
    ),
    "a rollback by a snapshot": Scenario(
        f"{FAILED_TWICE} rollback emergency finish",
        "gave_up_after_reflections",
        undoing(rollback="snapshot"),
        {"mode": "plan_exec"},
        settings=RED,
    ),
    "a plan that is parked": Scenario(
        "intake plan | spec_review | spec_review begin main verify settle finish",
        "completed",
        {"plan": [phases("one")], "main": [say()]},
        {"mode": "plan_exec"},
        ({"decision": "park"}, {"decision": "confirm"}),
    ),
    "a team": Scenario(
        "intake plan begin member member merge begin member merge finish",
        "completed",
        {
            "plan": [
                phases(
                    {"id": "a", "expert": "developer"},
                    {"id": "b", "expert": "tester"},
                    {"id": "c", "expert": "writer", "depends_on": ["a", "b"]},
                )
            ],
            "main": [say()],
        },
        {"mode": "team_collab"},
        settings=UNREVIEWED,
    ),
    "a team of which all fail": Scenario(
        "intake plan begin member member merge emergency finish",
        "gave_up_after_reflections",
        {"plan": [phases({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})]}
        | TWICE,
        {"mode": "team_collab"},
        settings=RED,
    ),
    "a rollback that is not needed": Scenario(
        f"{FAILED_TWICE} rollback emergency finish",
        "gave_up_after_reflections",
        undoing(rollback_command="false", validation_command="true"),
        {"mode": "plan_exec"},
        settings=RED,
    ),
    "blank answers": Scenario(
        "intake main recovery main recovery settle emergency finish",
        "failed",
        {"main": [BLANK, BLANK], "recovery": [NO_IDEA]},
    ),
    "one blank answer": Scenario(
        "intake main recovery main verify settle finish",
        "completed",
        {"main": [BLANK, say()], "recovery": [NO_IDEA]},
    ),
    "a model that is down": Scenario(
        "intake main recovery main recovery settle emergency finish",
        "failed",
        {"main": [DOWN, DOWN], "recovery": [DOWN]},
    ),
    "a person who helps": Scenario(
        "intake main recovery main recovery | consult main verify settle finish",
        "completed",
        {
            "main": [DOWN, DOWN, say() | {"expect": ["Use your own words."]}],
            "recovery": [NO_IDEA, NO_IDEA],
        },
        {},
        ({"answer": "Use your own words."},),
        {"fallback_chain": {"recovery": {"max_retries": 2}}},
    ),
    "a retry": Scenario(
        "intake main recovery main verify settle finish",
        "completed",
        {"main": [DOWN, say()], "recovery": [against("retry")]},
        settings=AT_ONCE,
    ),
    "a corrected call": Scenario(
        "intake main recovery tool main verify settle finish",
        "completed",
        {"main": [BLANK, say() | {"expect": ["HELLO"]}], "recovery": [against(**CORRECTED)]},
    ),
    "a corrected call that has to be confirmed": Scenario(
        "intake main recovery | gate tool main verify settle finish",
        "completed",
        {"main": [BLANK, say() | {"expect": ["HELLO"]}], "recovery": [against(**CORRECTED)]},
        replies=("approve",),
        settings={"tools": {"policy": {"shout": "confirm"}}},
    ),
    "a corrected call that is not allowed": Scenario(
        "intake main recovery main verify settle finish",
        "completed",
        {"main": [BLANK, say() | {"expect": ["denied by"]}], "recovery": [against(**CORRECTED)]},
        settings={"tools": {"policy": {"shout": "deny"}}},
    ),
    "a name that is not repaired to a hidden tool": Scenario(
        "intake main tool main tool main recovery main repair main verify settle finish",
        "completed",
        {
            "main": [calls("shout")] * 3 + [calls(call("sshout", id_="c")), say()],
            "recovery": [against("alternative-tool", tool_name="fall")],
            "repair": [{"json": {"repairs": [{"tool_call_id": "c", "name": "shout"}]}}],
        },
    ),
    "an action that a person agrees to": Scenario(
        "intake main recovery | consult main verify settle finish",
        "completed",
        {"main": [DOWN, say()], "recovery": [against("retry", 0.6)]},
        replies=({"decision": "approve"},),
        settings=AT_ONCE,
    ),
    "an action that a person does not want": Scenario(
        "intake main recovery | consult settle emergency finish",
        "failed",
        {"main": [DOWN], "recovery": [against("retry", 0.6)]},
        replies=({"decision": "deny"},),
    ),
    "an action that a person knows better than": Scenario(
        "intake main recovery | consult main verify settle finish",
        "completed",
        {"main": [DOWN, say() | {"expect": ["Wait a bit"]}], "recovery": [against("retry", 0.6)]},
        replies=({"decision": "instruct", "text": "Wait a bit."},),
    ),
    "a question that a model wants asked": Scenario(
        "intake main recovery | consult main verify settle finish",
        "completed",
        {
            "main": [DOWN, say() | {"expect": ["The blue one."]}],
            "recovery": [against("escalate", escalation_message="Which one?")],
        },
        replies=({"answer": "The blue one."},),
    ),
    "a model that gives up": Scenario(
        "intake main recovery settle emergency finish",
        "failed",
        {"main": [DOWN], "recovery": [against("give-up")]},
    ),
    "recovery that only looks on": Scenario(
        "intake main recovery settle emergency finish",
        "failed",
        {"main": [DOWN], "recovery": [against("retry", 0.6)]},
        settings={"fallback_chain": {"recovery": {"observe_only": True}}},
    ),
    "recovery switched off": Scenario(
        "intake main settle emergency finish",
        "failed",
        {"main": [DOWN]},
        settings={"fallback_chain": {"recovery": {"enabled": False}}},
    ),
    "a plan that a person helps with": Scenario(
        "intake plan recovery | consult plan begin main verify settle finish",
        "completed",
        {
            "plan": [DOWN, phases("one") | {"expect": ["Only one phase."]}],
            "main": [say()],
            "recovery": [against("parameter-adjustment", 0.2)],
        },
        {"mode": "plan_exec"},
        ({"answer": "Only one phase."},),
        UNREVIEWED,
    ),
    "a template that is not there": Scenario(
        "intake emergency finish", "failed", [], {"text": "@team:web build it"}
    ),
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, and a data folder beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_path_is_walked_to_its_end(path: Scenario, workspace: Path) -> None:
    """MO-07, MO-08: its nodes, as ``stream_mode="updates"`` shows them, and its result.

    What has to hold of every run: each request is legal, and each call has its one result (TL-03,
    TL-20); what is opened is closed (PL-04); no message takes the place of another.
    """
    run = Run(path.script, settings=settings(**path.settings), tools=[shout, fall])
    run.ask(**{"workspace": str(workspace)} | path.ask)
    for reply in path.replies:
        run.approve() if reply == "approve" else run.reply(reply)

    assert " ".join(run.nodes).replace("__interrupt__", "|") == path.nodes
    assert run.result.status == path.status
    assert path.output in run.result.output
    assert (run.result.error_struct is None) == (path.status == "completed")
    assert run.messages[-1].text == run.result.output
    assert illegal(run.messages) == []
    assert [each for request in run.model.requests for each in illegal(request)] == []
    assert unclosed(run.events) == []
    ids = [message.id for message in run.messages]
    assert None not in ids
    assert len(ids) == len(set(ids))


def test_a_turn_used_up_in_a_plan_is_not_completed(tmp_path: Path) -> None:
    """TL-16: checks that were green before the work are no reason to call it done."""
    limited = {"budgets": {"max_steps_per_turn": 1}, "verification": {"commands": ["true"]}}
    script = {"plan": [phases("one", "two")], "main": [calls("shout")]}
    run = Run(script, settings=settings(**UNREVIEWED | limited), tools=[shout])
    run.ask(mode="plan_exec", workspace=str(tmp_path))

    assert run.result.status == "max_steps_exceeded"
    assert run.result.output == "Stopped: exceeded max_steps_per_turn."


# --- The graph puts its workspace back: a task, a phase, a checkpoint, and back again (RO-07).

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def creating(name: str) -> dict[str, Any]:
    return calls(call("str_replace_editor", command="create", path=name, file_text=name))


SCRIPT = {
    "plan": [phases({"id": "p1", "title": "One"}, {"id": "p2", "title": "Two"})],
    "main": [creating("one"), say("Done."), creating("two"), say("Done.")],
}


@pytest.fixture
def ws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace; what Daruma keeps lies beside it."""
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def run_machine_undo(ws: Path) -> Run:
    """A thread whose phases made the files ``one`` and ``two``."""
    unchecked = settings(verification={"enabled": False}, spec_review={"enabled": False})
    done = Run(SCRIPT, settings=unchecked).ask(mode="plan_exec", workspace=str(ws))
    assert done.result.status == "completed"
    return done


def files(ws: Path) -> set[str]:
    return {path.name for path in ws.iterdir()}


def test_savepoints_name_the_states_of_a_thread(run_machine_undo: Run) -> None:
    """RO-03: before the task, before and after each phase, each with its snapshot."""
    kept = run_machine_undo.graph.savepoints(CONFIG)

    assert [each.id for each in kept] == ["1", "1/p1", "1/p1/done", "1/p2", "1/p2/done"]
    assert all(each.snapshot for each in kept)


@pytest.mark.parametrize(("to", "left"), [(None, set()), ("1/p1/done", {"one"}), ("1/p2", {"one"})])
def test_files_are_put_back_to_a_savepoint(
    run_machine_undo: Run, ws: Path, to: str | None, left: set[str]
) -> None:
    """And the state of the thread stays as it is."""
    before = run_machine_undo.snapshot.config

    restored = run_machine_undo.graph.undo(CONFIG, to=to)

    assert files(ws) == left
    assert restored.exact
    assert run_machine_undo.snapshot.config == before


@pytest.mark.parametrize("later", ["direct_chat", "plan_exec"])
def test_an_undo_keeps_out_of_a_workspace_that_a_run_works_in(
    run_machine_undo: Run, ws: Path, tmp_path: Path, later: Mode
) -> None:
    """Of the workspace whose files it changes, not of that which the newest task has (DU-03)."""
    (tmp_path / "other").mkdir()
    newest = a_task(later, id="t/2", workspace=str(tmp_path / "other"))
    run_machine_undo.graph.update_state(CONFIG, {"task": newest}, as_node="finish")

    with workspace_locked(str(ws)), pytest.raises(WorkspaceBusy):
        run_machine_undo.graph.undo(CONFIG, to="1/p1")

    assert files(ws) == {"one", "two"}


def test_an_undo_is_undone(run_machine_undo: Run, ws: Path) -> None:
    """By the snapshot that it took first."""
    restored = run_machine_undo.graph.undo(CONFIG)

    run_machine_undo.graph.undo(CONFIG, to=restored.before)

    assert files(ws) == {"one", "two"}


def test_who_travels_back_brings_the_files_along(run_machine_undo: Run, ws: Path) -> None:
    """The newest savepoint of the checkpoint counts."""
    past = next(
        each for each in run_machine_undo.graph.get_state_history(CONFIG)
        if each.values.get("plan") and each.values["plan"].current == "p1"
        and each.values["plan"].phase("p1").status == "completed"
    )  # fmt: skip

    run_machine_undo.graph.undo(past.config)

    assert files(ws) == {"one"}


async def test_files_are_put_back_asynchronously(run_machine_undo: Run, ws: Path) -> None:
    """The same, from an event loop."""
    restored = await run_machine_undo.graph.aundo(CONFIG, to="1/p2")

    assert isinstance(restored, Restored)
    assert files(ws) == {"one"}
    assert await run_machine_undo.graph.asavepoints(CONFIG) == run_machine_undo.graph.savepoints(
        CONFIG
    )


def test_what_somebody_else_changed_too_is_theirs_to_decide(
    run_machine_undo: Run, ws: Path
) -> None:
    """Refused before anything is changed; kept, or overwritten, as they say."""
    (ws / "one").write_text("mine")

    with pytest.raises(RestoreRefused) as refused:
        run_machine_undo.graph.undo(CONFIG)
    untouched = files(ws)
    kept = run_machine_undo.graph.undo(CONFIG, conflicts="keep")
    left = files(ws)
    run_machine_undo.graph.undo(CONFIG, conflicts="overwrite")

    assert refused.value.conflicts == ("one",)
    assert (untouched, left) == ({"one", "two"}, {"one"})
    assert not kept.exact
    assert files(ws) == set()


def test_the_next_run_tells_that_files_were_put_back(run_machine_undo: Run, ws: Path) -> None:
    """The state says that they are there: the model has to know better."""
    run_machine_undo.graph.undo(CONFIG)
    run_machine_undo.model.script = {**SCRIPT, "main": [*SCRIPT["main"], say("I see.")]}

    run_machine_undo.ask("Go on", mode="react", workspace=str(ws))

    (drifted,) = run_machine_undo.happened("workspace_drifted")
    assert drifted["paths"] == ("one", "two")


def test_a_thread_that_is_not_there_is_refused(run_machine_undo: Run) -> None:
    """Like everywhere, in one line."""
    with pytest.raises(UndoRefused, match="there is no thread 'nobody'"):
        run_machine_undo.graph.undo({"configurable": {"thread_id": "nobody"}})
    with pytest.raises(UndoRefused, match="there is no thread 'nobody'"):
        run_machine_undo.graph.savepoints({"configurable": {"thread_id": "nobody"}})
    with pytest.raises(UndoRefused, match="no checkpoint 'gone' on thread 't'"):
        run_machine_undo.graph.undo({"configurable": {"thread_id": "t", "checkpoint_id": "gone"}})
