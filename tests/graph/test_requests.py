"""What may enter the machine, checked before anything runs."""

from collections.abc import Iterator
from math import inf, nan
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.types import Overwrite
from tests.parts import a_task, memory
from tests.scripted_runs import Run, say

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.requests import RequestRefused
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.workers import submit
from daruma.state.settings import Settings

# --- What a person or Studio writes into a thread's state by hand: all of it can be read back.


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


@pytest.mark.long
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


@pytest.mark.long
def test_several_updates_are_written_as_one_step_each() -> None:
    """As plain tuples, which LangGraph takes as well as its own."""
    run = a_run()
    steps: Any = [[({"messages": said}, "finish", None)] for said in ("And?", "Yes.")]
    run.graph.bulk_update_state(run.config, steps)

    assert [each.content for each in run.snapshot.values["messages"][2:]] == ["And?", "Yes."]


# --- What a row can not keep of a run's config is refused in one line, before the run begins.

REQUEST = {"messages": [("user", "Do it")]}
THREAD = {"thread_id": "t"}
HALF = "\ud83d"

UNKEPT: Any = [
    ({"score": nan}, "no finite number"),
    ({"score": -inf}, "no finite number"),
    ({"who": f"a{HALF}"}, "half a character"),
    ({f"a{HALF}": 1}, "half a character"),
    ({"who": "a\0b"}, "NUL"),
    ({"a\0b": 1}, "NUL"),
    ({1: "x"}, "take a text"),
]


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Postgres]:
    with open_postgres(postgres_url) as opened:
        yield opened


def graph(**kept: Any) -> Any:
    return build_graph(ScriptedChatModel(script={"main": [say()]}), **kept)


def refused(run: Any, config: Any, said: str) -> None:
    with pytest.raises(RequestRefused, match=said) as error:
        run.invoke(REQUEST, config)
    assert "\n" not in str(error.value)
    str(error.value).encode()  # it can be printed, whatever it is about


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("metadata", "said"), UNKEPT)
def test_metadata_that_no_row_keeps_is_refused_and_nothing_is_lost(
    metadata: Any, said: str, postgres: Postgres
) -> None:
    """The same words whatever remembers it; the thread is as it was, and can be used."""
    for run in (graph(persistence=postgres), graph(checkpointer=memory())):
        refused(run, {"configurable": THREAD, "metadata": metadata}, said)
        refused(run.with_config(metadata=metadata), {"configurable": THREAD}, said)

        assert not run.get_state({"configurable": THREAD}).created_at
        done = run.invoke(REQUEST, {"configurable": THREAD, "metadata": {"who": "me"}})
        assert done["result"].status == "completed"


def test_what_is_configured_is_kept_too_and_so_refused(postgres: Postgres) -> None:
    """LangGraph puts it among the metadata of a checkpoint."""
    refused(graph(persistence=postgres), {"configurable": {**THREAD, "who": HALF}}, "half a")


def test_metadata_of_what_a_graph_is_called_within_counts(postgres: Postgres) -> None:
    """It comes to the checkpoints of the graph, as LangChain hands it on."""
    run = graph(persistence=postgres)
    chain: Any = RunnableLambda(lambda given: run.invoke(given, {"configurable": THREAD}))

    refused(chain, {"metadata": {"score": nan}}, "no finite number")


def test_an_edit_is_refused_like_a_run(postgres: Postgres) -> None:
    """It writes a checkpoint of its own."""
    run = graph(persistence=postgres)
    run.invoke(REQUEST, {"configurable": THREAD})

    with pytest.raises(RequestRefused, match="half a character"):
        run.update_state({"configurable": THREAD, "metadata": {"who": HALF}}, {"messages": []})


def test_what_is_not_kept_may_be_anything(postgres: Postgres) -> None:
    """Nested and live values serve tracers; no checkpoint has them. Numbers may be huge."""
    metadata = {"scores": [nan], "live": object(), "uuid": 2**127, "empty": None}
    done = graph(persistence=postgres).invoke(
        REQUEST, {"configurable": THREAD, "metadata": metadata}
    )

    assert done["result"].status == "completed"


@pytest.mark.parametrize("metadata", [{"who": HALF}, {"who": [HALF]}, {"who": "a\0b"}])
def test_metadata_that_can_not_be_queued_is_refused(metadata: Any, postgres: Postgres) -> None:
    """Before anything is queued, in words of ours."""
    with pytest.raises(RequestRefused):
        submit(postgres, REQUEST, metadata=metadata)
