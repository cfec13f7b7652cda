"""Budgets in tokens, money and time: asked about when they are spent, answered from anywhere."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command
from tests.parts import settings
from tests.scripted_runs import Run, call, calls, phases, say, unclosed

from daruma.graph.build import build_graph
from daruma.graph.history import NothingToReopen
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import open_postgres
from daruma.state.interrupts import ReplyRefused
from daruma.state.spending import AGAIN, spent_by_task

USED = {"usage": {"input": 60, "output": 40}}
PRICES = {"prices": {"scripted": {"input": 1000.0, "output": 1000.0}}}
"""Ten cents for each call."""


CIRCLE = '{"phases": [{"id": "a", "depends_on": ["a"]}]}'


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


WORK = [calls(call("shout", text=each)) | USED for each in "ab"] + [say("Done.") | USED]
PLANNED = {"plan": [phases({"id": "p"}) | USED], "main": WORK}


def run(script: Any, mode: str = "react", llm: Any = None, **budgets: Any) -> Run:
    given = settings(budgets=budgets, spec_review={"enabled": False}, llm=llm or {})
    return Run(script, settings=given, tools=[shout]).ask(mode=mode)


def ended(run: Run) -> tuple[str, str | None]:
    error = run.result.error_struct
    return run.result.status, error.error_code if error else None


@pytest.mark.parametrize(
    ("budgets", "llm"), [({"tokens": 150}, {}), ({"usd": 0.15}, PRICES), ({"usd": 0.2}, PRICES)]
)
def test_a_spent_budget_is_asked_about(budgets: dict[str, Any], llm: Any) -> None:
    """BU-04: before the call that would go beyond it; what is granted is on record."""
    asking = run({"main": WORK}, llm=llm, **budgets)
    measure = next(iter(budgets))
    assert asking.nodes[-2:] == ["main", "__interrupt__"]
    assert asking.question.value["options"] == [AGAIN, "stop"]
    assert asking.question.value["deadline"] is None

    asking.reply({"answer": AGAIN})

    assert ended(asking) == ("completed", None)
    assert asking.result.usage["main"]["calls"] == 3
    assert any(note.startswith("granted beyond its budget") for note in asking.result.notes)
    assert [event["measure"] for event in asking.happened("budget_settled")] == [measure]
    assert unclosed(asking.events) == []


def test_an_amount_in_words_is_granted_exactly() -> None:
    """And it is asked again once that is spent too, under another id."""
    asking = run({"main": WORK}, tokens=100)
    first = asking.question.value["id"]

    asking.reply({"answer": "tokens 50"})

    assert asking.question.value["id"] != first
    assert "150 tokens" in asking.question.value["question"]


@pytest.mark.parametrize("answer", ["usd 5", "tokens 0", "tokens lots", "yes"])
def test_an_answer_that_is_no_amount_leaves_it_open(answer: str) -> None:
    """Nothing is granted by a guess."""
    asking = run({"main": WORK}, tokens=100)

    with pytest.raises(ReplyRefused, match="tokens NUMBER"):
        asking.reply({"answer": answer})

    assert asking.question.value["type"] == "question"


@pytest.mark.parametrize("when_spent", ["ask", "stop"])
def test_it_ends_by_its_own_name(when_spent: str) -> None:
    """By the settings, or as a person says so: a failure that tells which budget it was."""
    asking = run({"main": WORK}, tokens=150, when_spent=when_spent)
    if when_spent == "ask":
        asking.reply({"answer": "stop"})

    assert ended(asking) == ("budget_exceeded", "budget_exceeded")
    assert "150 tokens is spent (200 used)" in (asking.result.error_message or "")
    assert spent_by_task(asking.state).tokens == 200
    assert unclosed(asking.events) == []


def test_who_has_no_checkpointer_is_not_asked() -> None:
    """There is nobody who could answer: it stops."""
    model = ScriptedChatModel(script={"main": WORK})
    graph: Any = build_graph(model, [shout], settings(budgets={"tokens": 150}))

    out = graph.invoke({"messages": [HumanMessage("Do it")]})

    assert out["result"].status == "budget_exceeded"


def test_planning_spends_of_it_too() -> None:
    """The plan's own call; then each phase, against the same limit."""
    asking = run({"plan": [say(CIRCLE) | USED], "main": WORK}, "plan_exec", tokens=100)
    assert asking.nodes[-3:] == ["plan", "plan", "__interrupt__"]

    asking.reply({"answer": "stop"})

    assert asking.nodes[-3:] == ["pause", "emergency", "finish"]
    assert ended(asking) == ("budget_exceeded", "budget_exceeded")


def test_a_phase_has_a_budget_of_its_own() -> None:
    """Planning is no part of it."""
    asking = run(PLANNED, "plan_exec", per_phase={"tokens": 150})

    assert (
        "The phase's budget of 150 tokens is spent (200 used)"
        in (asking.question.value["question"])
    )
    asking.reply({"answer": AGAIN})
    assert ended(asking) == ("completed", None)


@pytest.mark.parametrize("command", ["true", "false"])
def test_work_is_verified_before_it_ends(command: str, tmp_path: Any) -> None:
    """BU-01, MO-10: the tool calls under way are finished, then checked; that is no answer yet."""
    given = settings(
        budgets={"tokens": 200, "when_spent": "stop"},
        spec_review={"enabled": False},
        verification={"commands": [command]},
        sandbox={"require": "none"},
        fallback_chain={"recovery": {"max_retries": 0}},
    )
    stopped = Run(PLANNED, settings=given, tools=[shout])
    stopped.ask(mode="plan_exec", workspace=str(tmp_path))

    assert stopped.nodes.count("verify") == 1
    assert stopped.nodes.index("pause") < stopped.nodes.index("verify")
    assert ended(stopped)[0] == "budget_exceeded"
    assert stopped.result.phases[0].verification is not None
    assert stopped.result.phases[0].verification.passed == (command == "true")
    assert unclosed(stopped.events) == []


def test_time_at_work_is_counted_and_not_the_wait_for_people() -> None:
    """The smallest budget is spent by the first call; what a person takes is none of it."""
    asking = run({"main": WORK}, seconds=1e-9)
    assert asking.question.value["amounts"] == ["seconds"]

    asking.reply({"answer": "seconds 3600"})

    assert ended(asking) == ("completed", None)
    kinds = {step.kind for step in asking.state.steps}
    assert {"think", "tool", "pause"} <= kinds


def test_a_fork_has_spent_what_its_history_says() -> None:
    """BU-03: a grant that came later is none of its own."""
    asking = run({"main": WORK}, tokens=100).reply({"answer": "tokens 1000"})
    (before,) = [
        past
        for past in asking.graph.get_state_history(asking.config)
        if past.next == ("main",) and [s.kind for s in past.values["steps"]] == ["think", "tool"]
    ]

    forked = asking.graph.update_state(before.config, None, as_node="__copy__")
    list(asking.graph.stream(None, forked))

    assert asking.question.value["type"] == "question"
    assert spent_by_task(asking.state).tokens == 100


def test_a_stopped_task_goes_on_once_settings_allow_more() -> None:
    """TL-23: with the work that was done; too little is refused, naming the setting."""
    stopped = run({"main": WORK}, tokens=150, when_spent="stop")
    with pytest.raises(NothingToReopen, match=r"Raise budgets\.tokens"):
        stopped.graph.reopen(stopped.config)

    more = settings(budgets={"tokens": 1000})
    saver = stopped.graph.checkpointer
    stopped.graph = build_graph(stopped.model, [shout], more, checkpointer=saver)
    stopped.graph.reopen(stopped.config)
    stopped.send(None)

    assert ended(stopped) == ("completed", None)
    assert stopped.result.usage["main"]["calls"] == 3


def test_all_phases_that_were_stopped_go_on() -> None:
    """From where the stop was: what came after it has done nothing."""
    each = [calls(call("shout", text="a")) | USED, say("Done.") | USED]
    script = {"plan": [phases({"id": "p"}, {"id": "q"}) | USED], "main": each * 2}
    stopped = run(script, "plan_exec", tokens=150, when_spent="stop")

    more = settings(budgets={"tokens": 1000}, spec_review={"enabled": False})
    saver = stopped.graph.checkpointer
    stopped.graph = build_graph(stopped.model, [shout], more, checkpointer=saver)
    stopped.graph.reopen(stopped.config)
    stopped.send(None)

    assert ended(stopped) == ("completed", None)
    assert [phase.status for phase in stopped.result.phases] == ["completed", "completed"]


def test_members_share_what_is_left() -> None:
    """Each asks by an id of its own; both grants are on the task's record."""
    pair = ({"id": "a", "expert": "developer"}, {"id": "b", "expert": "tester"})
    work = [calls(call("shout", text="x")) | USED] * 2 + [say("Done.") | USED]
    script = {"plan": [phases(*pair) | USED], "main@a": work, "main@b": work}
    given = settings(budgets={"tokens": 300}, spec_review={"enabled": False})
    asking = Run(script, settings=given, tools=[shout]).ask(mode="team_collab")
    ids = {each.value["id"]: each.id for each in asking.snapshot.interrupts}
    assert sorted(ids) == ["t/1:a:budget:0", "t/1:b:budget:0"]

    asking.send(Command(resume={key: {"answer": "tokens 1000"} for key in ids.values()}))

    assert ended(asking) == ("completed", None)
    assert any("2,000 tokens" in note for note in asking.result.notes)
    told = [asking.happened(f"budget_{each}") for each in ("spent", "settled")]
    assert [sorted(event["member"] for event in each) for each in told] == [["a", "b"]] * 2


@pytest.fixture
def graphs(postgres_url: str) -> Iterator[Any]:
    """A graph over the same database, opened anew each time, as another process would."""

    def opened(**budgets: Any) -> Any:
        postgres = stack.enter_context(open_postgres(postgres_url))
        model = ScriptedChatModel(script={"main": WORK})
        return build_graph(model, [shout], settings(budgets=budgets), persistence=postgres)

    with ExitStack() as stack:
        yield opened


def test_a_grant_survives_the_process_that_took_it(graphs: Any) -> None:
    """Asked in one, answered in a second, which ends right after the grant; a third goes on."""
    config: Any = {"configurable": {"thread_id": "t"}}
    first = graphs(tokens=100)
    first.invoke({"messages": [HumanMessage("Do it")]}, config)

    second = graphs(tokens=100)
    (question,) = second.get_state(config).interrupts
    reply: Command[Any] = Command(resume={question.id: {"answer": "tokens 1000"}})
    second.invoke(reply, config, interrupt_after=["pause"])
    third = graphs(tokens=100)
    out = third.invoke(None, config)

    assert out["result"].status == "completed"
    assert sum(step.kind == "pause" for step in third.get_state(config).values["steps"]) == 1


def test_it_is_asked_as_all_questions_are() -> None:
    """With the form of inboxes, and when it was asked: a yes sent before is none to this one."""
    value = run({"main": WORK}, tokens=100).question.value

    assert value["asked_at"] > 0
    assert value["action_requests"][0]["args"] == {"answer": AGAIN}
