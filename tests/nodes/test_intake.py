"""A new request is read once: mode, goal, workspace, and the limits it runs under."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from tests.parts import a_context, a_failure, a_phase, a_plan, a_task, settings

from daruma.nodes.intake import intake
from daruma.state.channels import State, Update
from daruma.state.events import Event, TaskStarted
from daruma.state.mode import Mode
from daruma.state.task import Task


async def read(text: str, state: State | None = None, **sections: Any) -> Update:
    base = state or State()
    given = replace(base, messages=[*base.messages, HumanMessage(text)])
    return await intake(given, a_context(given=settings(**sections)))


async def task_of(text: str, state: State | None = None, **sections: Any) -> Task:
    task = (await read(text, state, **sections))["task"]
    assert task is not None
    return task


@pytest.mark.parametrize(
    ("text", "asked", "configured", "mode"),
    [
        ("@plan do it", "direct_chat", "react", "direct_chat"),
        ("@plan do it", None, "react", "plan_exec"),
        ("do it", None, "plan_exec", "plan_exec"),
        ("do it", None, None, "react"),
    ],
)
async def test_the_input_goes_before_the_prefix_before_the_settings(
    text: str, asked: Mode | None, configured: str | None, mode: Mode
) -> None:
    """MO-02: and the prefix is removed from the goal in any case."""
    sections = {"mode": configured} if configured else {}
    task = await task_of(text, State(mode=asked), **sections)

    assert (task.mode, task.goal) == (mode, "do it")


async def test_the_old_task_is_cleared_away() -> None:
    """But for the history of messages and steps."""
    update = await read("do it", State(failure=a_failure(), plan=a_plan(a_phase("a"))))

    assert {key: value for key, value in update.items() if key != "task"} == {
        "plan": None,
        "calls": (),
        "reports": (),
        "verification": None,
        "savepoints": [],
        "drifted": None,
        "crowded": None,
        "failure": None,
        "origin": None,
        "action": None,
        "error": None,
        "recalled": None,
        "steps": [],
        "continuity": None,
        "clarification": None,
    }


async def test_a_thread_numbers_its_tasks_and_keeps_its_workspace() -> None:
    """BU-03: their ids tell their steps apart; a request may name another workspace."""
    old = State(task=a_task(workspace="/old"))
    first, second = await task_of("one"), await task_of("two", old)

    assert (first.id, second.id) == ("t/1", "t/2")
    assert second.workspace == "/old"
    assert (await task_of("go on", replace(old, workspace="/new"))).workspace == "/new"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("@plan  ", "the message is empty"),
        ("@team:cod x", "no team template 'cod'; did you mean 'coding'? There are: coding, resea"),
    ],
)
async def test_what_can_not_be_done_is_refused(text: str, said: str) -> None:
    """MO-06: nothing falls silently back to something else."""
    failure = (await read(text))["failure"]

    assert failure is not None
    assert failure.code == "bad_request"
    assert said in failure.message


@pytest.mark.parametrize(
    ("text", "asked", "template"),
    [
        ("@team:research x", None, "research"),
        ("@team x", None, "coding"),
        ("@plan x", None, None),
        ("x", None, None),
        ("@team:none x", "react", None),
    ],
)
async def test_a_task_of_a_team_knows_its_template(
    text: str, asked: Mode | None, template: str | None
) -> None:
    """MO-06: without a name it is that of the settings; other modes have none.

    MO-02: the input goes before the prefix, whose template then means nothing.
    """
    update = await read(text, State(mode=asked))

    assert update["failure"] is None
    assert update["task"] is not None
    assert update["task"].template == template


async def test_a_team_that_can_not_be_used_is_refused(tmp_path: Path) -> None:
    """MO-06: with the file, the key and what is wrong, whether it is named or in the settings."""
    (tmp_path / "web.yaml").write_text("experts: [{name: a, about: b, profile: none}]")
    team = {"folders": [str(tmp_path)], "template": "web"}

    for text in ("@team:web x", "@team x"):
        failure = (await read(text, team=team))["failure"]
        assert failure is not None
        assert failure.code == "bad_request"
        assert "web.yaml: key 'experts.0.profile': there is no profile 'none'" in failure.message


async def test_the_start_is_told() -> None:
    """With the goal as it will be worked on."""
    events: list[Event] = []
    await intake(State(messages=[HumanMessage("@plan  do it ")]), a_context(events=events))

    assert events == [TaskStarted(task_id="t/1", mode="plan_exec", goal="do it", workspace=None)]
