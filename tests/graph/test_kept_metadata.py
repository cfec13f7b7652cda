"""What a row can not keep of a run's config is refused in one line, before the run begins."""

from collections.abc import Iterator
from math import inf, nan
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda
from tests.parts import memory
from tests.scripted_runs import say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.requests import RequestRefused
from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.graph.workers.work import submit

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
