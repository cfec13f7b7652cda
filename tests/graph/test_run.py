"""However it is called, the machine takes the same way, under the settings that were given."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command
from tests.parts import memory, settings
from tests.scripted_runs import RecordingModel, Run, call, calls, illegal, phases, say, shout

from daruma.graph.build import build_graph
from daruma.graph.history import UndoRefused
from daruma.graph.storage import open_postgres
from daruma.state.settings import Settings

CONFIG: Any = {"configurable": {"thread_id": "t"}}
BROKEN = "def add(a, b):\n    return a - b\n"


def replacing(old: str, new: str) -> dict[str, Any]:
    args = {"command": "str_replace", "path": "calc.py", "old_str": old, "new_str": new}
    return calls(call("str_replace_editor", **args))


FRUGAL = settings(budgets={"preset": "frugal"}, verification={"commands": ['grep "a + b" calc.py']})
SCRIPT = {
    "plan": [phases({"id": "p1", "title": "Fix", "instructions": "Make the tests pass."})],
    "main": [
        replacing("a - b", "a * b"),
        say("Fixed it."),
        replacing("a * b", "a + b") | {"expect": ["I multiplied"]},
        say("Fixed it really."),
    ],
    "reflect": [say("I multiplied.")],
}
REQUEST: dict[str, Any] = {
    "messages": [HumanMessage("Make the tests pass", id="q")],
    "mode": "plan_exec",
}


async def invoke(graph: Any, given: Any) -> None:
    """Synchronously, inside a running loop, as in a notebook."""
    graph.invoke(given, CONFIG)


async def ainvoke(graph: Any, given: Any) -> None:
    await graph.ainvoke(given, CONFIG)


async def stream(graph: Any, given: Any) -> None:
    """Synchronously, in a thread without a loop."""
    await asyncio.to_thread(lambda: list(graph.stream(given, CONFIG, stream_mode="updates")))


async def astream(graph: Any, given: Any) -> None:
    async for _ in graph.astream(given, CONFIG, stream_mode=["messages", "custom", "values"]):
        pass


WAYS: list[Callable[[Any, Any], Any]] = [invoke, ainvoke, stream, astream]


def told(state: Any, workspace: Path) -> str:
    """A thread's state as text, without clock and timings, nor where its workspace lies."""
    values = dict(state.values)
    values["steps"] = [replace(step, at=0.0, seconds=0.0) for step in values["steps"]]
    values["savepoints"] = [replace(each, at=0.0) for each in values["savepoints"]]
    values["task"] = replace(values["task"], started_at=0.0)
    values["result"] = replace(values["result"], timings={})
    shown = json.dumps({key: repr(value) for key, value in values.items()}, indent=1)
    timeless = re.sub(r"seconds=[0-9.e-]+|in [0-9.]+s", "", shown)
    return timeless.replace(str(workspace), "WORKSPACE")


async def test_what_is_returned_is_made_of_common_lists() -> None:
    """By both faces, by both versions of LangGraph's outputs."""
    graph = build_graph(RecordingModel(script={"main": [say("Hello.")]}), settings=settings())
    given: Any = {"messages": [("user", "Hello")]}

    outs = [
        graph.invoke(given),
        await graph.ainvoke(given),
        graph.invoke(given, version="v2").value,
        (await graph.ainvoke(given, version="v2")).value,
    ]

    assert [type(out["messages"]) for out in outs] == [list] * 4


@pytest.mark.long
async def test_all_four_ways_end_in_the_same_state(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MO-09: a reviewed plan, a wrong fix, red tests, a reflection, the right fix, green tests.

    On Postgres and in memory alike.
    """
    monkeypatch.setenv("DARUMA_DATA_DIR", str(tmp_path / "data"))
    with open_postgres(postgres_url) as postgres:
        kept = [await every_way(saver, tmp_path) for saver in (memory(), postgres.checkpointer)]

    assert "Fixed it really." in kept[0][0]
    first, *others = [each for ways in kept for each in ways]
    assert len(others) == 7
    assert [at for other in others if (at := apart(first, other))] == []


def apart(one: str, other: str) -> tuple[str, str] | None:
    """Where two texts begin to differ, in short: all of them is more than anybody reads."""
    if one == other:
        return None
    pairs = enumerate(zip(one, other, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))
    return one[max(0, at - 80) : at + 80], other[at : at + 80]


async def every_way(saver: BaseCheckpointSaver[Any], folder: Path) -> list[str]:
    """Run the task each way, on a thread of the same name, and return how its state is told."""

    async def ended(way: Callable[[Any, Any], Any]) -> str:
        # Names of one length: a path is a part of what the model is sent, and is counted.
        work = folder / f"{type(saver).__name__[:3]}-{WAYS.index(way)}"
        await asyncio.to_thread(work.mkdir)
        await asyncio.to_thread((work / "calc.py").write_text, BROKEN)
        await saver.adelete_thread("t")
        graph = build_graph(RecordingModel(script=SCRIPT), settings=FRUGAL, checkpointer=saver)
        await way(graph, REQUEST | {"workspace": str(work)})
        (question,) = (await graph.aget_state(CONFIG)).interrupts
        await way(graph, Command(resume={question.id: {"decision": "confirm"}}))
        assert await asyncio.to_thread((work / "calc.py").read_text) == BROKEN.replace("-", "+")
        return told(await graph.aget_state(CONFIG), work)

    return [await ended(way) for way in WAYS]


def limited(think: int) -> Settings:
    return settings(budgets={"max_steps": think}, tools={"policy": {"shout": "confirm"}})


def test_a_resumed_run_has_the_graphs_settings() -> None:
    """A context is not stored: without one LangGraph would hand out None."""
    run = Run([calls("shout"), calls("shout"), say()], settings=limited(9), tools=[shout]).ask()
    run.decide(call_main_0_0="approve")

    assert run.nodes[-1] == "__interrupt__"


def test_a_run_resumed_with_other_settings_has_those() -> None:
    """Here the policy that asked is gone."""
    run = Run([calls("shout"), calls("shout"), say()], settings=limited(9), tools=[shout]).ask()
    (approval,) = run.question.value["approvals"]
    decision = {"approval_id": "call_main_0_0", "digest": approval["digest"]}
    reply = {"decisions": [decision | {"decision": "approve"}]}
    run.send(Command(resume={run.question.id: reply}), context=Settings())

    assert run.result.status == "completed"


def test_the_limits_of_a_task_are_those_it_began_with() -> None:
    """BU-03: its own history says them, whatever the settings are by then."""
    run = Run([calls("shout")] * 2, settings=limited(2), tools=[shout]).ask()
    run.decide(call_main_0_0="approve").decide(call_main_1_0="approve")

    assert run.result.status == "max_steps_exceeded"


def test_a_fork_has_the_budget_that_its_history_says() -> None:
    """BU-03: taken up again after one of three model calls, two are left."""
    unasked = settings(budgets={"max_steps": 3})
    each = [calls(call(text=text)) for text in ("one", "two", "three")]
    run = Run(each, settings=unasked, tools=[shout]).ask()
    history = list(run.graph.get_state_history(run.config))
    (after_one,) = [s for s in history if s.next == ("tool",) and len(s.values["steps"]) == 1]
    run.nodes.clear()

    for part in run.graph.stream(None, after_one.config, stream_mode="updates"):
        run.nodes.extend(part)

    assert run.nodes.count("main") == 3
    assert run.result.budgets["think"] == 3
    assert run.result.status == "max_steps_exceeded"


def test_a_second_task_on_a_thread_begins_anew() -> None:
    """With the history of the first, and budgets, plan and result of its own."""
    script = {"plan": [phases("one")], "main": [say("First."), say("Second.")]}
    run = Run(script, settings=settings(spec_review={"enabled": False}))
    first = run.ask(mode="plan_exec").result
    second = run.ask("And now?", mode="react").result

    assert (first.task_id, second.task_id) == ("t/1", "t/2")
    assert (second.output, second.phases) == ("Second.", ())
    assert (first.budgets["think"], second.budgets["think"]) == (1, 1)
    assert [m.text for m in run.messages if m.type == "human"][0::2] == ["Do it", "And now?"]


def test_a_copy_is_a_machine_too() -> None:
    """LangGraph copies graphs to configure them; the door must stay."""
    graph: Any = Run([say()]).graph
    bound = graph.with_config(CONFIG)

    assert type(bound) is type(graph)
    assert bound.invoke({"messages": "hi"})["result"].status == "completed"
    assert bound.get_state(CONFIG).values["result"].task_id == "t/1"


def test_without_persistence_a_task_runs_all_the_same() -> None:
    """Nothing is remembered."""
    graph: Any = build_graph(RecordingModel(script=[say(), say()]), settings=settings())

    for _ in range(2):
        assert graph.invoke({"messages": "hi"}, CONFIG)["result"].status == "completed"


def test_without_persistence_nothing_can_be_undone() -> None:
    """RO-07: in one line that says what to do, and not in LangGraph's words."""
    graph: Any = build_graph(RecordingModel(script=[say()]), settings=settings())

    for ask in (graph.undo, graph.savepoints):
        with pytest.raises(UndoRefused, match="keeps no threads, so nothing can be undone: build"):
            ask(CONFIG)


def test_odd_text_from_a_model_can_be_sent_on() -> None:
    """Lone surrogates in answers and arguments can not be sent to any provider again."""
    odd = calls(call(text="x\ud800")) | {"say": "y\ud800"}
    run = Run([odd, say()], tools=[shout]).ask()

    for message in (message for request in run.model.requests for message in request):
        json.dumps(message.model_dump(), ensure_ascii=False, default=str).encode()


@pytest.mark.parametrize("name", ["memory.search", "no such tool", ""])
def test_an_impossible_name_does_not_brick_the_thread(name: str) -> None:
    """A provider refuses every later request with such a name in it: requests must be legal."""
    run = Run([calls(name), say()], tools=[shout]).ask()

    assert [problem for request in run.model.requests for problem in illegal(request)] == []
