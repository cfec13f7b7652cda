"""Chapter 4: progress, loops, and what is done about a failure (RE)."""

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore
from tests.openai_answers import Reply
from tests.openai_server import Answer, openai_server
from tests.spec.face import (
    ALLOWED,
    Run,
    action,
    call,
    calls,
    command,
    create,
    plan,
    refused,
    say,
    view,
)

from daruma import build_graph

UNAIDED: dict[str, Any] = {"fallback_chain": {"recovery": {"enabled": False}}}
UNCHECKED: dict[str, Any] = {"verification": {"enabled": False}}
GIVE_UP = [action("give-up")] * 9


def look(text: str) -> str:
    """Look something up."""
    return f"nothing of {text[:0]}"


def fall(text: str) -> str:
    """Fall over."""
    raise ValueError(f"fell over {text}")


def code_of(run: Run) -> str | None:
    """The code that the task ended with."""
    return run.result.error_struct.error_code if run.result.error_struct else None


def recovering(**settings: Any) -> dict[str, Any]:
    """Settings of recovery, that waits for nothing."""
    return {"fallback_chain": {"recovery": {"wait_seconds": 0, **settings}}}


# --- RE-01 to RE-03: no progress, loops, and what starts a recovery.

ABSENT = [calls(view(f"gone/{name}.txt")) for name in "abcdefgh"]
PRESENT = [calls(view(f"{name}.txt")) for name in "abcdefgh"]
NO_CHANGE = [calls(command(f"true {name}")) for name in "abcdefgh"]
CHANGES = [calls(command(f"touch new-{name}")) for name in "abcdefgh"]


@pytest.mark.parametrize(("turns", "stuck"), [(ABSENT, True), (PRESENT, False)])
def test_three_steps_without_anything_new_are_no_progress(
    turns: list[Any], stuck: bool, workspace: Path
) -> None:
    """RE-01: the estimate says how far it is, what it is made of, and what stands in the way."""
    for name in "abcdefgh":
        (workspace / f"{name}.txt").write_text(f"{name}\n")
    script = {"main": [*turns, say()], "recovery": GIVE_UP}
    run = Run(script, workspace=workspace, **UNCHECKED).ask()

    assert code_of(run) == ("loop_detected" if stuck else None)
    if stuck:
        assert "no progress over the last 3 steps" in run.result.output
        progress = run.happened("recovery_started")[0]["progress"]
        fields = {"percent", "reasoning", "next_milestone", "blockers", "is_stuck"}
        assert progress.keys() == fields
        assert progress["is_stuck"]
        assert progress["blockers"]


@pytest.mark.parametrize(("turns", "stuck"), [(ABSENT, True), (NO_CHANGE, True), (CHANGES, False)])
def test_an_error_is_news_by_its_kind(turns: list[Any], stuck: bool, workspace: Path) -> None:
    """RE-01a: the fifth file that is not there, and commands that change and tell nothing."""
    settings = UNAIDED | UNCHECKED | {"tools": ALLOWED}
    run = Run([*turns, say()], workspace=workspace, **settings).ask()

    assert (code_of(run) == "loop_detected") == stuck
    assert (run.result.budgets["think"] < 9) == stuck


A, B = calls(call("look", text="a")), calls(call("look", text="b"))


@pytest.mark.parametrize(
    ("mode", "turns", "ran"),
    [
        ("react", [A] * 9, 2),
        ("plan_exec", [A] * 9, 3),
        ("react", [A, B] * 9, 4),
        ("plan_exec", [A, B] * 9, 5),  # three steps without anything new are enough (RE-01)
    ],
)
def test_a_repeated_sequence_of_actions_is_a_loop(mode: str, turns: list[Any], ran: int) -> None:
    """RE-02: twice, three times in modes that keep working; cycles longer than one count."""
    asked: list[str] = []

    def look(text: str) -> str:
        """Look something up."""
        asked.append(text)
        return text

    script = {"plan": [plan("one")], "main": turns}
    review: dict[str, Any] = {"spec_review": {"enabled": False}}
    run = Run(script, mode=mode, with_tools=[look], **UNAIDED | review).ask()

    assert code_of(run) == "loop_detected"
    assert len(asked) == ran


def test_what_comes_to_something_else_is_no_loop() -> None:
    """RE-02: a poll whose answer changes goes on."""
    count: list[int] = []

    def poll() -> str:
        """Ask how it is."""
        count.append(1)
        return f"{len(count)} of 9 are done"

    run = Run([*[calls(call("poll"))] * 8, say()], with_tools=[poll], **UNAIDED).ask()

    assert run.result.completed
    assert len(count) == 8


def test_a_loop_begins_anew_after_a_reflection(workspace: Path) -> None:
    """RE-02: what was done before it is not counted again."""
    main = [calls(view(".")), say(), calls(view(".")), say(), calls(create("ok", "")), say()]
    script = {"main": main, "reflect": [say("Look again.")] * 2}
    checks: dict[str, Any] = {
        "verification": {"enabled": True, "commands": ["test -f ok"], "max_reinjections": 0}
    }
    run = Run(script, workspace=workspace, **UNAIDED | checks).ask()

    assert run.result.headline == "completed"


@pytest.mark.parametrize(
    ("main", "code"),
    [
        ([{"raise": "down"}, say()], "llm_failure"),
        ([say("  "), say()], "llm_failure"),
        ([A, A, A, say()], "loop_detected"),
        ([*ABSENT[:5], say()], "loop_detected"),
    ],
)
def test_what_starts_a_recovery(main: list[Any], code: str, workspace: Path) -> None:
    """RE-03: an exception, an empty answer, a loop, no progress; a loop is its own blocker."""
    script = {"main": main, "recovery": [action("parameter-adjustment")]}
    run = Run(script, workspace=workspace, with_tools=[look], **UNCHECKED | recovering()).ask()

    (started,) = run.happened("recovery_started")
    assert started["code"] == code
    assert run.result.completed
    if main[0] == A:
        assert started["progress"]["is_stuck"]
        assert started["progress"]["blockers"] == [started["message"]]


def test_red_checks_and_spent_steps_reach_a_person_where_they_are_to(workspace: Path) -> None:
    """RE-03a: who can grant more, instruct or stop; asked of nobody, the task ends as it did."""
    checks: dict[str, Any] = {"verification": {"commands": ["test -f ok"], "max_reinjections": 0}}
    red = [calls(create("mess", "")), say(), say(), say()]
    ok = [calls(create("ok", "")), say("Mended.")]

    def run(main: list[Any], *, ask: bool | None, **settings: Any) -> Run:
        for file in workspace.iterdir():
            file.unlink()
        script = {"main": main, "reflect": [say("Hm.")] * 4}
        given = recovering(ask=ask) | checks | settings
        return Run(script, workspace=workspace, **given).ask()

    silent = run(red, ask=None)
    assert silent.result.status == "gave_up_after_reflections"
    granted = run([*red, *ok], ask=True)
    assert "budgets.reflect (2)" in granted.question.value["question"]
    assert granted.reply({"answer": "go on"}).result.headline == "completed"
    stopped = run(red, ask=True).reply({"answer": "stop"})
    assert stopped.result.status == "gave_up_after_reflections"
    steps = [calls(create(str(n), "")) for n in range(2)]
    short = run([*steps, *ok], ask=True, budgets={"max_steps": 2})
    assert "budgets.max_steps (2)" in short.question.value["question"]
    assert short.reply({"answer": "Make ok."}).result.headline == "completed"


# --- RE-04 to RE-07: the action, and whether it is done.


def test_the_main_model_is_asked_for_one_action(monkeypatch: pytest.MonkeyPatch) -> None:
    """RE-04: at 0.2 and 600 tokens at most, with all that is known; the fallback is another's."""
    told = action("parameter-adjustment", reasoning="Try text.")["json"]

    def reply(request: dict[str, Any]) -> Answer:
        messages = json.dumps(request["messages"])
        if "A step of an agent failed" in messages:
            return Reply(json.dumps(told))
        if "It may help." in messages:
            return Reply("Done.")
        return (
            Reply(" ")
            if '"role": "tool"' in messages
            else Reply(calls=[{"id": "c1", "name": "look", "arguments": {"text": "the moon"}}])
        )

    with openai_server(reply) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        settings = recovering() | {"llm": {"auxiliary_model": "openai:small"}}
        graph: Any = build_graph("openai:big", [look], settings)
        out = graph.invoke({"messages": [HumanMessage("Find the moon")]})
        (asked,) = [each for each in server.requests if "A step of an" in str(each["messages"])]

    assert asked["model"] == "big"
    assert asked["temperature"] == 0.2
    assert (asked.get("max_completion_tokens") or asked.get("max_tokens")) == 600
    words = asked["messages"][1]["content"].lower()
    for part in ("goal", "progress", "latest step", "known facts", "blockers", "analysis"):
        assert part in words
    assert "the moon" in words
    assert out["result"].completed
    assert [each.strategy for each in out["result"].recoveries] == ["parameter-adjustment"]


@pytest.mark.parametrize(
    "said", [say("I do not know."), say(""), {"raise": "down"}, {"json": {"strategy": "magic"}}]
)
def test_recovery_that_fails_itself_has_a_default(said: Any) -> None:
    """RE-05: another way the first time, a question the second; it never raises."""
    script = {"main": [say(" "), say(" "), say()], "recovery": [said] * 2}
    run = Run(script, **recovering(max_retries=2)).ask()

    first, second = run.happened("recovery_action")
    assert (first["strategy"], first["by"]) == ("parameter-adjustment", "rule")
    assert (second["strategy"], second["by"]) == ("escalate", "rule")
    assert run.question.value["type"] == "question"
    assert run.reply({"answer": "Say done."}).result.completed


@pytest.mark.parametrize(
    ("confidence", "settings", "asked"),
    [
        (0.8, {}, None),
        (0.79, {}, "recovery_request"),
        (0.5, {}, "recovery_request"),
        (0.49, {}, "question"),
        (0.6, {"execute_above": 0.6}, None),
        (0.3, {"ask_above": 0.3}, "recovery_request"),
    ],
)
def test_how_sure_an_action_is_decides_who_does_it(
    confidence: float, settings: dict[str, Any], asked: str | None
) -> None:
    """RE-06: by thresholds that are settings; what does not fit is refused, and stays open."""
    script = {"main": [say(" "), say()], "recovery": [action("parameter-adjustment", confidence)]}
    run = Run(script, **recovering(**settings)).ask()

    if asked is None:
        assert run.result.completed
        return
    assert run.question.value["type"] == asked
    refused(lambda: run.reply({"decision": "perhaps"}))
    if asked == "question":
        run.reply({"answer": "Say done."})
    else:
        assert run.question.value["action"]["confidence"] == confidence
        run.reply({"decision": "approve"})
    assert run.result.completed


def test_a_denied_action_is_not_done_and_one_that_is_only_observed_neither() -> None:
    """RE-06: the task fails of what it had failed of."""
    script = {"main": [say(" "), say()], "recovery": [action("parameter-adjustment", 0.6)]}
    denied = Run(script, **recovering()).ask().reply({"decision": "deny"})
    observed = Run(script, **recovering(observe_only=True)).ask()
    told = Run(script, **recovering()).ask().reply({"decision": "instruct", "text": "Say done."})

    for run, carried in ((denied, "denied"), (observed, "observed")):
        assert run.result.status == "failed"
        assert len(run.model.asked()) == 1
        assert [each.carried for each in run.result.recoveries] == [carried]
    assert "Say done." in told.model.asked()[1].text
    assert told.result.completed


def test_recoveries_of_a_failure_are_limited() -> None:
    """RE-07: one of the same failure, unless settings say more; none of recovery's own."""
    for most in (0, 1, 2):
        script = {"main": [say(" ")] * 9, "recovery": [action("parameter-adjustment")] * 9}
        run = Run(script, **recovering(max_retries=most)).ask()

        assert len(run.model.asked("recovery")) == most
        assert run.result.status == "failed"


def test_retries_of_one_tool_are_limited() -> None:
    """RE-07: two, then another tool has to be chosen, or a person."""
    made = action("parameter-adjustment", tool_name="fall", parameters={"text": "again"})
    turns = [[calls(call("fall", text=f"{kind}{n}")) for n in range(4)] for kind in "ab"]
    script = {"main": [each for turn in turns for each in turn] * 4, "recovery": [made] * 9}
    settings = recovering(max_retries=9) | {"budgets": {"max_steps": 30}}
    run = Run(script, with_tools=[fall, look], **settings).ask()

    chosen = [each["strategy"] for each in run.happened("recovery_action")]
    assert chosen[:2] == ["parameter-adjustment"] * 2
    assert set(chosen[2:]) & {"alternative-tool", "escalate"}


# --- RE-08 to RE-10.


def test_what_has_worked_before_is_tried_first() -> None:
    """RE-08: after three times without asking a model; not where it is not to be fed back."""
    store = InMemoryStore()

    def carried_out(thread: int, *, observe_only: bool = False) -> str:
        script = {"main": [say(" "), say()], "recovery": [action("parameter-adjustment")]}
        learning = {"observe_only": observe_only, "success_sample_rate": 1.0}
        settings = recovering() | {"evolution": learning}
        run = Run(script, store=store, thread=f"t{thread}", **settings).ask()
        assert run.result.completed
        assert run.graph.evolution.drain()
        (done,) = run.result.recoveries
        assert bool(run.model.asked("recovery")) == (done.by == "model")
        return done.by

    assert [carried_out(n) for n in range(4)] == ["model", "model", "model", "learned"]
    assert carried_out(4, observe_only=True) == "model"


def test_what_can_stand_in_for_a_tool_is_told() -> None:
    """RE-08a: what does the same to the same; never something that does something else."""

    def fetch_page(url: str) -> str:
        """Fetch a web page from the internet."""
        raise ValueError(f"{url}: the internet is down")

    def read_page(url: str) -> str:
        """Read a web page from the internet archive."""
        return f"a page of {url}"

    def delete_page(url: str) -> str:
        """Delete a web page from the internet."""
        raise AssertionError(url)

    tries = [calls(call("fetch_page", url=f"x{n}")) for n in range(5)]
    script = {
        "main": [*tries, say()],
        "recovery": [action("alternative-tool", tool_name="read_page")],
    }
    run = Run(script, with_tools=[fetch_page, read_page, delete_page], **recovering()).ask()

    (asked,) = run.model.asked("recovery")
    line = next(each for each in asked.text.splitlines() if "stand in for fetch_page" in each)
    assert "read_page" in line
    assert "delete_page" not in line
    assert "fetch_page" not in run.model.asked()[-1].tools


def test_recovery_is_told_as_events() -> None:
    """RE-09: started, chosen, completed; closed when a person has answered, too."""
    script = {"main": [say(" "), say()], "recovery": [action("parameter-adjustment", 0.6)]}
    run = Run(script, **recovering()).ask().reply({"decision": "approve"})

    told = [each["type"] for each in run.events if each["type"].startswith("recovery_")]
    assert told == ["recovery_started", "recovery_action", "recovery_completed"]
    assert run.happened("recovery_completed")[0]["carried"] == "approved"
    assert run.unclosed == []


def test_after_giving_up_recovery_does_not_reflect_again(workspace: Path) -> None:
    """RE-10: whatever the model wants; it ends, or a person says."""
    checks: dict[str, Any] = {"verification": {"commands": ["test -f ok"], "max_reinjections": 0}}
    script = {
        "main": [calls(create("mess", "")), *[say()] * 9],
        "reflect": [say("Hm.")] * 9,
        "recovery": [action("retry"), action("parameter-adjustment")] * 3,
    }
    run = Run(script, workspace=workspace, **recovering(max_retries=3) | checks).ask()

    assert run.result.status == "gave_up_after_reflections"
    assert len(run.model.asked("reflect")) == 2
    assert run.nodes[run.nodes.index("reflect") :].count("reflect") == 2
