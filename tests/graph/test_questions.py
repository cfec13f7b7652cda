"""Every question to a person is told when it opens, and closed on every path (PL-04)."""

import asyncio
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from tests.parts import memory
from tests.scripted_runs import (
    REQUESTS,
    RecordingModel,
    Run,
    against,
    call,
    calls,
    phases,
    say,
    shout,
)

from daruma.graph.build import build_graph
from daruma.graph.requests import PARK
from daruma.state.settings import Settings

OFF: Mapping[str, Any] = {
    "spec_review": {"enabled": False},
    "verification": {"enabled": False},
    "fallback_chain": {"recovery": {"wait_seconds": 0}},
}
PLANNED: Mapping[str, Any] = {"mode": "plan_exec"}
UNSURE: Mapping[str, Any] = {"main": [say(" "), say()]}
SPENT = {"usage": {"input": 50, "output": 50}}


async def pay(amount: int) -> str:
    """Pay."""
    await asyncio.Event().wait()
    return str(amount)


@dataclass(frozen=True)
class Case:
    """How a run comes to a question, what agrees to it and what does not."""

    type: str
    kind: str
    script: Any
    yes: Any
    no: Any
    settings: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)


CASES = {
    "plan": Case(
        "spec_review_request",
        "plan",
        {"plan": [phases("one")] * 2, "main": [say()] * 2},
        {"decision": "confirm"},
        {"decision": "reject", "feedback": "Otherwise."},
        {"spec_review": {"enabled": True}},
        PLANNED,
    ),
    "approval": Case(
        "approval_request",
        "approval",
        [calls("shout"), say()],
        "approve",
        "deny",
        {"tools": {"policy": {"shout": "confirm"}}},
    ),
    "recovery": Case(
        "question_request",
        "recovery",
        {**UNSURE, "recovery": [against("parameter-adjustment", 0.6)]},
        {"decision": "approve"},
        {"decision": "deny"},
    ),
    "help": Case(
        "question_request",
        "recovery",
        {**UNSURE, "recovery": [against("parameter-adjustment", 0.4)]},
        {"answer": "Say done."},
        {"answer": "stop"},
    ),
    "clarification": Case(
        "question_request",
        "clarification",
        {
            "plan": [phases("one")],
            "main": [calls(call("create_reminder", title="Milk")), say(), say()],
        },
        {"answer": "on 5 May 2031"},
        {"answer": "never mind"},
        {"tools": {"toolsets": ["assistant"], "time_zone": "Etc/GMT-1"}},
        PLANNED,
    ),
    "budget": Case(
        "question_request",
        "budget",
        [calls("shout") | SPENT, say()],
        {"answer": "go on with as much again"},
        {"answer": "stop"},
        {"budgets": {"tokens": 60, "when_spent": "ask"}},
    ),
    "rollback": Case(
        "question_request",
        "rollback",
        {"plan": [phases({"id": "a", "rollback_command": "false"})], "main": [say()] * 9},
        {"answer": "keep"},
        {"answer": "retry"},
        {
            "verification": {"enabled": True, "commands": ["false"]},
            "budgets": {"verify": 2, "reflect": 0},
        },
        PLANNED,
    ),
    "doubt": Case(
        "question_request",
        "doubt",
        [calls(call("pay", amount=5)), say()],
        {"answer": "happened"},
        {"answer": "unknown"},
        {"tools": {"policy": {"pay": "allow"}}},
    ),
}


def built(case: Case) -> Any:
    return build_graph(
        RecordingModel(script=case.script),
        [pay, shout],
        Settings.model_validate({**OFF, **case.settings}),
        checkpointer=memory(),
        store=InMemoryStore(),
    )


def begun(case: Case, workspace: Path) -> Run:
    """Return a run that has come to its question."""
    run = Run(case.script, graph=built(case))
    if case.kind != "doubt":
        return run.ask(workspace=str(workspace), **case.request)
    cut(run, {"messages": [("user", "Do it")]}, "tool_started")
    return run.send(None)


def cut(run: Run, given: Any, at: str) -> Any:
    """Begin a run, and end it as soon as it tells of something.

    Return a graph over what was on record at that moment, as a killed process leaves it.
    """
    parts = run.graph.stream(given, run.config, stream_mode="custom")
    for event in parts:
        run.events.append(event)
        if event["type"] == at:
            saver = memory()
            for name in ("storage", "writes", "blobs"):
                setattr(saver, name, deepcopy(getattr(run.graph.checkpointer, name)))
            parts.close()
            return run.graph.copy({"checkpointer": saver})
    raise AssertionError(f"{at} was not told")


def reply(run: Run, said: Any) -> Any:
    """Return a reply in the form of the open question."""
    if not isinstance(said, str):
        return said
    return {
        "decisions": [
            {"approval_id": each["approval_id"], "digest": each["digest"], "decision": said}
            for each in run.question.value["approvals"]
        ]
    }


def told(run: Run) -> list[tuple[str, str]]:
    """Return what was told of questions: the type, and the id of the question."""
    types = (*REQUESTS, "question_closed")
    return [(each["type"], each["id"]) for each in run.events if each["type"] in types]


AGREED = ("answered", "looked at", "cancelled", "killed")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("path", [*AGREED, "denied"])
def test_a_question_is_told_once_and_closed(case: Case, path: str, tmp_path: Path) -> None:
    """PL-04: whatever is replied, and where the run with the reply is cut off and resumed."""
    run = begun(case, tmp_path)
    asked, name = run.question, run.question.value["id"]
    given: Any = Command(resume={asked.id: reply(run, case.yes if path in AGREED else case.no)})
    (event,) = [each for each in run.events if each["type"] in REQUESTS]

    assert (event["kind"], event["interrupt_id"]) == (case.kind, asked.id)
    assert (event["type"], event["question"]["id"]) == (case.type, name)
    if path == "looked at":  # going on without a reply asks the same once more
        run.send(None)
    if path in ("cancelled", "killed"):
        left = cut(run, given, "question_closed")
        run.graph = left if path == "killed" else run.graph
        lost = path == "killed" and run.snapshot.interrupts  # a reply in memory dies with it
        given = given if lost else None
    run.send(given)

    of_it = [type_ for type_, id_ in told(run) if id_ == name]
    assert of_it[:2] == [case.type, "question_closed"]
    assert {*of_it[2:]} <= {"question_closed"}  # which a killed node tells again


def test_a_plan_that_nobody_confirmed_in_time_is_asked_about_anew(tmp_path: Path) -> None:
    """PL-03, PL-04: the end of the deadline closes one question, and opens one without."""
    run = begun(CASES["plan"], tmp_path)
    name = run.question.value["id"]
    run.reply(PARK)

    assert run.question.value["parked"]
    assert run.happened("question_closed")[0]["decision"] == "timeout"
    request, closed = ("spec_review_request", name), ("question_closed", name)
    assert told(run) == [request, closed, request]
