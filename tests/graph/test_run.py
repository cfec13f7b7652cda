"""However it is called, the machine takes the same way, under the settings that were given."""

import json
from typing import Any

import pytest
from langgraph.types import Command
from tests.parts import settings
from tests.scripted_runs import RecordingModel, Run, call, calls, illegal, phases, say, shout

from daruma.graph.build import build_graph
from daruma.graph.history import UndoRefused
from daruma.state.settings import Settings

CONFIG: Any = {"configurable": {"thread_id": "t"}}


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
