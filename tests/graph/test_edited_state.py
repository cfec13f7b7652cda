"""What a person or Studio writes into a thread's state by hand: all of it can be read back."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Overwrite
from tests.parts import a_task
from tests.scripted_runs import Run, say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.requests import RequestRefused
from daruma.graph.storage.postgres import open_postgres
from daruma.state.settings import Settings


def a_run() -> Run:
    return Run({"main": [say("Hello.")]}).ask("Hi")


@pytest.mark.parametrize(
    "values",
    [
        {"task": "a text"},
        {"task": {"goal": "As JSON, as an editor of states sends it"}},
        {"plan": {"phases": []}},
        {"steps": "text"},
        {"mode": "no such mode"},
        {"result": a_task()},
        {"steps": Overwrite([1])},
        {"messages": Overwrite(["text"])},
    ],
)
async def test_what_could_not_be_read_back_is_refused(values: dict[str, Any]) -> None:
    """It was written, and its thread was damaged from then on."""
    run = a_run()
    (channel,) = values

    with pytest.raises(RequestRefused, match=f"'{channel}'"):
        run.graph.update_state(run.config, values)
    with pytest.raises(RequestRefused, match=f"'{channel}'"):
        await run.graph.aupdate_state(run.config, values)


def test_a_thread_in_a_database_stays_readable(postgres_url: str) -> None:
    """There, what is read is checked."""
    config: Any = {"configurable": {"thread_id": "t"}}
    with open_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script={"main": [say("Hello.")]})
        graph = build_graph(model, [], Settings(), persistence=pg)
        graph.invoke({"messages": [("user", "Hi")]}, config)
        before = graph.get_state(config).values
        with pytest.raises(RequestRefused):
            graph.update_state(config, {"plan": {"phases": []}})

        assert graph.get_state(config).values == before


@pytest.mark.parametrize(
    "one",
    [
        HumanMessage("And?"),
        "And?",
        ("user", "And?"),
        {"role": "user", "content": "And?"},
        [HumanMessage("And?")],
        (HumanMessage("And?"),),
    ],
)
def test_one_message_is_one(one: Any) -> None:
    """As LangGraph's own takes it; a text was a message for each of its letters."""
    run = a_run()
    run.graph.update_state(run.config, {"messages": one})

    assert [each.content for each in run.snapshot.values["messages"][2:]] == ["And?"]


def test_what_fits_is_written() -> None:
    """A record, nothing, and a new history."""
    run = a_run()
    run.graph.update_state(run.config, {"task": a_task(), "result": None}, as_node="finish")
    run.graph.update_state(run.config, {"messages": Overwrite([HumanMessage("Only this.")])})
    run.graph.update_state(run.config, None, as_node="finish")

    assert run.snapshot.values["task"] == a_task()
    assert [each.content for each in run.snapshot.values["messages"]] == ["Only this."]


def test_several_updates_are_written_as_one_step_each() -> None:
    """As plain tuples, which LangGraph takes as well as its own."""
    run = a_run()
    steps: Any = [[({"messages": said}, "finish", None)] for said in ("And?", "Yes.")]
    run.graph.bulk_update_state(run.config, steps)

    assert [each.content for each in run.snapshot.values["messages"][2:]] == ["And?", "Yes."]
