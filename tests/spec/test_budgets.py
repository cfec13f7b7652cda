"""Chapter 6: budgets (BU)."""

from pathlib import Path
from typing import Any

import pytest
from tests.openai_answers import Reply
from tests.openai_server import openai_server
from tests.spec.face import ALLOWED, Run, calls, create, plan, refused, say

from daruma import Settings, build_graph

CHECKED: dict[str, Any] = {
    "verification": {"commands": ["test -f ok"]},
    "spec_review": {"enabled": False},
    "tools": ALLOWED,
}
OK = calls(create("ok", "ok\n"))
HM = say("I see what is wrong.")


def work(steps: int) -> list[Any]:
    """So many turns, every one with something new."""
    return [calls(create(f"part_{number}", f"{number}\n")) for number in range(steps)]


def settings(**sections: Any) -> Any:
    return Settings(**sections)


def test_there_are_two_presets() -> None:
    """BU-01: 50, 4, 2, 50, and the design's 7, 2, 1, 10; a key of one's own goes before."""
    for preset, numbers in {"work": (50, 4, 2, 50, 1), "frugal": (7, 2, 1, 10, 0)}.items():
        given = settings(budgets={"preset": preset})
        spend = given.budgets
        found = (spend.think, spend.verify, spend.reflect, spend.max_steps)
        assert (*found, given.verification.max_reinjections) == numbers
    assert settings() == settings(budgets={"preset": "work"})
    assert settings(budgets={"preset": "frugal", "think": 9}).budgets.think == 9


def test_what_can_not_be_reached_together_is_refused() -> None:
    """BU-01: when the settings are read."""
    line = refused(lambda: settings(budgets={"verify": 2, "reflect": 2}))

    assert "verify" in line
    assert settings(budgets={"verify": 2, "reflect": 0}).budgets.verify == 2


@pytest.mark.parametrize(
    ("mode", "budgets", "limit"),
    [
        ("react", {"max_steps": 3}, "budgets.max_steps (3)"),
        ("react", {"preset": "frugal"}, "budgets.max_steps (10)"),
        ("plan_exec", {"think": 3, "max_steps": 1}, "budgets.think (3)"),
        ("plan_exec", {"preset": "frugal"}, "budgets.think (7)"),
    ],
)
def test_an_ending_names_the_limit_that_bound(
    mode: str, budgets: dict[str, Any], limit: str, workspace: Path
) -> None:
    """BU-01: quotas by phase in modes that keep working, one total in react."""
    script = {"plan": [plan("one")], "main": work(12)}
    run = Run(script, mode=mode, workspace=workspace, **CHECKED | {"budgets": budgets}).ask()

    assert run.result.status == "max_steps_exceeded"
    assert limit in run.result.output
    bound = int(limit.partition("(")[2][:-1])
    assert run.result.budgets["think"] == bound
    assert len(run.outputs) == bound


@pytest.mark.parametrize(("reflect", "verifications"), [(0, 2), (1, 3), (2, 4)])
def test_reflections_have_one_limit(reflect: int, verifications: int, workspace: Path) -> None:
    """BU-01: 0 is none; the result that there is stands."""
    script = {"plan": [plan("one")], "main": [*work(1), *[say("Best.")] * 5], "reflect": [HM] * 5}
    settings = CHECKED | {"budgets": {"reflect": reflect}}
    run = Run(script, mode="plan_exec", workspace=workspace, **settings).ask()

    assert len(run.model.asked("reflect")) == reflect
    assert len(run.result.verifications) == verifications
    assert run.result.answer == "Best."
    assert not run.result.completed


def test_red_is_no_reason_to_stop_while_quota_is_left(workspace: Path) -> None:
    """BU-02: the last attempt of all may be the green one."""
    main = [*work(1), say(), say(), say(), OK, say("Mended.")]
    run = Run({"main": main, "reflect": [HM] * 2}, workspace=workspace, **CHECKED).ask()

    assert [each.outcome for each in run.result.verifications] == ["failed"] * 3 + ["passed"]
    assert run.result.headline == "completed"


def test_what_is_spent_is_what_the_history_says(workspace: Path) -> None:
    """BU-03: a fork from an earlier point has what was left there, and stops at the same place."""
    script = {"main": [*work(6), say()]}
    given: dict[str, Any] = {"verification": {"enabled": False}, "budgets": {"max_steps": 3}}
    run = Run(script, workspace=workspace, **given).ask()
    history = list(run.graph.get_state_history(run.config))
    early = [each for each in history if each.next == ("main",)]
    assert len(early) == 4

    for left, point in enumerate(early):
        walked = [
            name
            for part in run.graph.stream(None, point.config, stream_mode="updates")
            for name in part
        ]
        assert walked.count("tool") == left
        assert run.result.status == "max_steps_exceeded"
        assert run.result.budgets["think"] == 3


SPENDS = {"usage": {"input": 90, "output": 20}}


@pytest.mark.parametrize(
    ("budgets", "name"),
    [
        ({"tokens": 100}, "budgets.tokens"),
        ({"per_phase": {"tokens": 100}}, "budgets.per_phase.tokens"),
        ({"usd": 0.0001}, "budgets.usd"),
    ],
)
@pytest.mark.parametrize("mode", ["react", "plan_exec"])
def test_tokens_and_money_have_budgets(
    budgets: dict[str, Any], name: str, mode: str, workspace: Path
) -> None:
    """BU-04: of a task and of a phase; asked about, or the end; an answer that is there stays."""
    llm = {"prices": {"scripted": {"input": 1.0, "output": 1.0}}}
    main = [work(1)[0] | SPENDS, say("Here.")]
    script = {"plan": [plan("one")], "main": main}

    def run(when_spent: str) -> Run:
        for file in workspace.iterdir():
            file.unlink()
        spend = {"budgets": budgets | {"when_spent": when_spent}, "llm": llm}
        return Run(script, mode=mode, workspace=workspace, **CHECKED | spend).ask()

    stopped, asked = run("stop"), run("ask")

    assert stopped.result.status == "budget_exceeded"
    assert name in stopped.result.output
    assert len(stopped.model.asked()) <= 1
    assert asked.question.value["type"] == "question"
    assert name in asked.question.value["question"] + asked.question.value["context"]
    assert asked.happened("budget_spent") != []


def test_time_has_a_budget(workspace: Path) -> None:
    """BU-04: of work; not of the time that a person takes."""
    slow = [work(1)[0] | {"wait": 0.05}, say()]
    spend: dict[str, Any] = {"budgets": {"seconds": 0.01, "when_spent": "stop"}}
    run = Run(slow, workspace=workspace, **CHECKED | spend).ask()

    assert run.result.status == "budget_exceeded"
    assert "budgets.seconds" in run.result.output


@pytest.mark.parametrize("usage", ["untold", None])
def test_a_provider_that_tells_no_usage_is_estimated(
    usage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BU-05: and marked so: a budget of tokens is never silently void."""
    words = "many words " * 200
    with openai_server(lambda _: Reply(words, usage=usage)) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        graph: Any = build_graph("openai:big", settings={})
        told = graph.invoke({"messages": [("user", words)]})["result"].usage["main"]

    assert told["input_tokens"] > 200
    assert told["output_tokens"] > 200
    assert told.get("estimated", 0) == (usage == "untold")
