"""Chapter 1: a task, its mode, and how it ends (MO)."""

import asyncio
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from tests.spec.face import (
    ALLOWED,
    NO_RECOVERY,
    Daruma,
    Run,
    action,
    call,
    calls,
    command,
    create,
    plan,
    say,
    view,
)

from daruma import ScriptedChatModel, Settings, build_graph

CHECKED: dict[str, Any] = {
    "verification": {"commands": ["test -f ok"]},
    "spec_review": {"enabled": False},
    "tools": ALLOWED,
}
OK = calls(create("ok", "ok\n"))
MESS = calls(create("mess", "a mess\n"))
HM = say("I see what is wrong.")


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


# --- MO-01, MO-02: the four modes, and where a task's mode comes from.


@pytest.mark.parametrize(
    ("mode", "script", "walked"),
    [
        ("direct_chat", [say()], {"main"}),
        ("react", [calls(call("shout", text="x")), say()], {"main", "tool"}),
        ("plan_exec", {"plan": [plan("one")], "main": [say()]}, {"plan", "begin", "main"}),
        ("team_collab", {"plan": [plan("one")], "main": [say()]}, {"plan", "member", "merge"}),
    ],
)
def test_there_are_four_modes(mode: str, script: Any, walked: set[str], workspace: Path) -> None:
    """MO-01: a chat is one answer without tools, react a loop; plans have phases, teams experts."""
    run = Run(script, mode=mode, with_tools=[shout], workspace=workspace, **CHECKED)
    (workspace / "ok").touch()

    run.ask()

    (started,) = run.happened("task_started")
    assert started["mode"] == mode
    assert walked <= set(run.nodes)
    assert bool(run.model.asked()[0].tools) == (mode != "direct_chat")
    assert run.result.completed


@pytest.mark.parametrize(
    ("given", "text", "mode", "goal"),
    [
        (None, "Mend it", "plan_exec", "Mend it"),
        (None, "@chat Mend it", "direct_chat", "Mend it"),
        (None, "@plan Mend it", "plan_exec", "Mend it"),
        (None, "@team Mend it", "team_collab", "Mend it"),
        (None, "@team:research Mend it", "team_collab", "Mend it"),
        ("react", "@chat Mend it", "react", "Mend it"),
        (None, "Mend @chat it", "plan_exec", "Mend @chat it"),
        (None, "@chatter Mend it", "plan_exec", "@chatter Mend it"),
    ],
)
def test_the_mode_is_of_the_input_then_the_prefix_then_the_settings(
    given: str | None, text: str, mode: str, goal: str
) -> None:
    """MO-02: and the prefix is no part of the goal."""
    script = {"plan": [plan("one")], "main": [say()]}
    sections: dict[str, Any] = {"mode": "plan_exec", "spec_review": {"enabled": False}}
    settings, model = Settings(**sections), ScriptedChatModel(script=script)
    run = Run(
        [], mode=None, graph=build_graph(model, settings=settings, checkpointer=InMemorySaver())
    )

    run.ask(text, **({"mode": given} if given else {}))

    (started,) = run.happened("task_started")
    assert (started["mode"], started["goal"]) == (mode, goal)


# --- MO-03 to MO-06: what each mode does, and does not.


def test_a_chat_does_nothing_but_answer(workspace: Path) -> None:
    """MO-03: red checks that are switched on leave a chat alone, and it writes nothing."""
    settings = CHECKED | {"verification": {"enabled": True, "commands": ["test -f ok"]}}
    run = Run([say("Hello.")], mode="direct_chat", workspace=workspace, **settings).ask()

    assert run.result.headline == "completed, not checked"
    assert run.result.verifications == ()
    assert not {"verify", "reflect", "recovery"} & set(run.nodes)
    assert run.happened("verification_started") == []


def test_react_has_one_total_of_steps_and_verifies_what_it_changed(workspace: Path) -> None:
    """MO-04: who changed nothing is not checked, and is told to be so."""
    few = CHECKED | {"budgets": {"max_steps": 2}}
    looked = Run([calls(view(".")), say()], workspace=workspace, **CHECKED).ask()
    changed = Run([OK, say()], workspace=workspace, **CHECKED).ask()
    spent = Run([MESS, calls(view("mess"))], workspace=workspace, **few).ask()

    assert looked.result.headline == "completed, not checked"
    assert [each["commands"] for each in looked.happened("verification_started")] == [()]
    assert changed.result.headline == "completed"
    assert changed.result.checked.by == ("test -f ok",)
    assert spent.result.status == "max_steps_exceeded"


@pytest.mark.parametrize("mode", ["plan_exec", "team_collab"])
def test_modes_that_plan_verify_by_default_and_have_quotas_a_phase(
    mode: str, workspace: Path
) -> None:
    """MO-05: nothing has to change for that; what one phase spends is not the next one's."""
    (workspace / "ok").touch()
    think = [calls(view(".")), say()]
    run = Run(
        {"plan": [plan("one", {"title": "two", "depends_on": ["p1"]})], "main": think * 2}
        if mode == "plan_exec"
        else {
            "plan": [plan("one", {"title": "two", "depends_on": ["p1"]})],
            "main@p1": think,
            "main@p2": think,
        },
        mode=mode,
        workspace=workspace,
        **CHECKED | {"budgets": {"think": 2, "max_steps": 1}},
    ).ask()

    assert run.result.headline == "completed"
    assert run.result.budgets["think"] == 4
    assert len(run.happened("verification_completed")) == 2


def test_a_team_never_becomes_another_mode() -> None:
    """MO-06: unknown templates name those there are; without a phase that went well it failed."""
    unknown = Run([say()], mode=None).ask("@team:nobody Mend it")
    stranger = plan({"title": "one", "expert": "plumber"})
    nobody = Run({"plan": [stranger] * 9, "main": [say()]}, mode="team_collab", **NO_RECOVERY)
    failing = {"plan": [plan("one", "two")], "main@p1": [say("")], "main@p2": [say("")]}
    settings = NO_RECOVERY | {"spec_review": {"enabled": False}}
    failed = Run(failing, mode="team_collab", **settings).ask()
    nobody.ask()

    assert {"coding", "research"} <= set(_words(unknown.result.error_message or ""))
    for run in (unknown, nobody, failed):
        assert run.result.status == "failed"
        assert run.happened("task_started")[0]["mode"] == "team_collab"
    assert unknown.model.requests == []
    assert "plumber" in (nobody.result.error_message or "")
    assert [each.status for each in failed.result.phases] == ["failed", "failed"]


def _words(text: str) -> list[str]:
    return text.replace(",", " ").replace(".", " ").replace("'", " ").split()


# --- MO-07 to MO-11: how a task ends.


def test_a_task_ends_with_one_result(workspace: Path) -> None:
    """MO-07: whole, as JSON too; a success has no error, and `to_dict` then no place for one."""
    (workspace / "ok").touch()
    script = {"plan": [plan("one")], "main": [say("Here it is.")]}
    good = Run(script, mode="plan_exec", workspace=workspace, **CHECKED).ask().result
    bad = Run([{"raise": "the provider is down"}], **NO_RECOVERY).ask().result

    assert (good.status, good.output, good.error_message, good.error_struct) == (
        "completed",
        "Here it is.",
        None,
        None,
    )
    assert [each.outcome for each in good.phases] == ["completed"]
    assert {"think": 1, "plan": 1, "verify": 1}.items() <= good.budgets.items()
    assert good.usage["main"]["calls"] == 2
    assert good.timings["total"] > 0
    told = json.loads(json.dumps(good.to_dict()))
    assert "error_struct" not in told
    fields = {"task_id", "status", "output", "error_message", "phases", "budgets", "usage"}
    assert fields | {"timings", "checked"} <= set(told)
    assert "the provider is down" in (bad.error_message or "")
    assert bad.error_struct is not None
    assert bad.to_dict()["error_struct"] == bad.error_struct.to_dict()


def _status_of(name: str, workspace: Path) -> Run:
    required = {"policy": {"shout": {"decision": "confirm", "required": True}}}
    shouting = [calls(call("shout", "c1", text="x")), say()]
    if name == "blocked":
        run = Run(shouting, with_tools=[shout], tools=required).ask()
        return run.decide(c1="deny")
    if name == "parked":
        run = Run({"plan": [plan("one")]}, mode="plan_exec").ask()
        return run.reply({"decision": "park"})
    script, settings = {
        "completed": ([say()], {}),
        "failed": ([{"raise": "down"}], NO_RECOVERY),
        "gave_up_after_reflections": ({"main": [MESS, *[say()] * 4], "reflect": [HM] * 2}, CHECKED),
        "max_steps_exceeded": ([MESS, MESS], {"budgets": {"max_steps": 1}}),
    }[name]
    return Run(script, workspace=workspace, **settings).ask()


@pytest.mark.parametrize(
    "status",
    [
        "completed",
        "failed",
        "gave_up_after_reflections",
        "max_steps_exceeded",
        "parked",
        "blocked",
    ],
)
def test_only_completed_is_a_success(status: str, workspace: Path) -> None:
    """MO-08: for the result, its events and its words; whoever cancelled sees the cancelling."""
    run = _status_of(status, workspace)

    assert run.result.status == status
    assert run.result.completed == (status == "completed")
    assert run.happened("task_completed")[-1]["status"] == status
    assert (run.result.error_message is None) == (status in ("completed", "parked"))


@pytest.mark.parametrize(
    ("main", "code", "status"),
    [
        ([OK, say()], 0, "completed"),
        ([MESS, *[say()] * 4], 1, "gave_up_after_reflections"),
        ([{"raise": "down"}] * 9, 1, "failed"),
    ],
)
def test_the_exit_code_is_zero_for_completed_alone(
    daruma: Daruma, main: list[Any], code: int, status: str
) -> None:
    """MO-08: on the command line as well."""
    daruma.configure(
        "verification: {commands: ['test -f ok']}\nfallback_chain: {recovery: {enabled: false}}"
    )
    model = daruma.script(main=main, reflect=[HM] * 2)

    said = daruma("run", "Do it", "--workspace", "ws", "--model", model, "--json")

    assert (said.code, said.json["status"]) == (code, status)


def test_all_four_ways_to_run_are_one(workspace: Path) -> None:
    """MO-09: the same path, messages, events and files, whichever way it is called."""

    def seen(way: str) -> Any:
        for file in workspace.iterdir():
            file.unlink()
        script = {"plan": [plan("one")], "main": [MESS, say(), OK, say("Mended.")]}
        run = Run(script, mode="plan_exec", workspace=workspace, **CHECKED)
        _drive(run, way)
        history = [list(each.next) for each in run.graph.get_state_history(run.config)]
        messages = [(each.type, each.content) for each in run.messages]
        files = sorted(each.name for each in workspace.iterdir())
        return history, messages, run.result.status, run.result.budgets, files

    first, *others = [seen(way) for way in ("invoke", "ainvoke", "stream", "astream")]

    assert first[2:] == (
        "completed",
        first[3],
        ["mess", "ok"],
    )
    assert others == [first] * 3


def _drive(run: Run, way: str) -> None:
    given = {"messages": [HumanMessage("Do it", id="m1")], **run.request}

    async def streamed() -> None:
        async for _ in run.graph.astream(given, run.config):
            pass

    match way:
        case "invoke":
            run.graph.invoke(given, run.config)
        case "stream":
            list(run.graph.stream(given, run.config))
        case "ainvoke":
            asyncio.run(run.graph.ainvoke(given, run.config))
        case _:
            asyncio.run(streamed())


@pytest.mark.parametrize(
    ("main", "settings", "headline", "outcome"),
    [
        ([OK, say("Mended.")], {}, "completed", "passed"),
        ([say("All is green.")], {}, "completed, not checked", "none"),
        (
            [MESS, say("All is green.")],
            {"verification": {"enabled": False, "commands": ["false"]}},
            "completed, not checked",
            "none",
        ),
        ([MESS, *[say("All is green.")] * 4], {}, "gave_up_after_reflections", "failed"),
        ([OK, calls(view("ok"))], {"budgets": {"max_steps": 2}}, "max_steps_exceeded", None),
    ],
)
def test_completed_means_checked_or_says_that_it_is_not(
    main: list[Any], settings: dict[str, Any], headline: str, outcome: str | None, workspace: Path
) -> None:
    """MO-10: red is never completed, and without an answer nothing is, however green it is."""
    script = {"main": main, "reflect": [HM] * 2}
    run = Run(script, workspace=workspace, **CHECKED | settings).ask()

    assert run.result.headline == headline
    assert str(run.result).splitlines()[0] == headline
    assert outcome in (run.result.checked.outcome, None)
    assert run.happened("task_completed")[-1]["headline"] == headline
    if not run.result.completed:
        assert run.result.answer == main[-1].get("say", "")


def test_not_checked_is_said_on_every_face(daruma: Daruma) -> None:
    """MO-10: the command, its JSON, `show` and the page say it, and the exit code is 0."""
    model = daruma.script(main=[say("All is green.")])
    words = "completed, not checked"

    ran = daruma("run", "Do it", "--workspace", "ws", "--model", model, "--json", "--thread", "t")
    daruma("show", "t", "--html", "page.html")

    assert ran.code == 0
    assert words in ran.err
    assert (ran.json["headline"], ran.json["checked"]["outcome"]) == (words, "none")
    assert words in daruma("show", "t").out
    assert words in daruma("threads").out
    assert words in (daruma.folder / "page.html").read_text()


def test_a_plans_result_holds_each_phases_answer(workspace: Path) -> None:
    """MO-10: in order; and a task that failed later keeps what was said."""
    main = [say("First."), OK, say("Second."), calls(command("rm ok")), *[say("Third.")] * 4]
    script = {"plan": [plan("one", "two", "three")], "main": main, "reflect": [HM] * 9}
    (workspace / "ok").touch()
    run = Run(script, mode="plan_exec", workspace=workspace, **CHECKED).ask()

    assert [each.answer for each in run.result.phases] == ["First.", "Second.", "Third."]
    assert run.result.status == "gave_up_after_reflections"
    assert run.result.answer == "Third."
    assert run.result.error_message


REFUSALS = [say("Sorry, I would rather not."), {"json": {"steps": ["one"]}}]


@pytest.mark.parametrize(("first", "second"), [*product(REFUSALS, [*REFUSALS, plan("one")])])
def test_a_planner_without_a_plan_is_asked_once_more(first: Any, second: Any) -> None:
    """MO-11: told what was wrong; then the task fails as `plan_rejected`, and nothing is run."""
    script = {"plan": [first, second], "main": [say("Done.")], "recovery": [action("give-up")]}
    run = Run(script, mode="plan_exec", spec_review={"enabled": False}).ask()

    asked = run.model.asked("plan")
    assert len(asked) == 2
    assert len(asked[1].messages) > len(asked[0].messages)
    if second == plan("one"):
        assert run.result.completed
    else:
        assert run.result.error_struct is not None
        assert run.result.error_struct.error_code == "plan_rejected"
        assert run.model.asked() == []
