"""Large outputs of whole runs: in the database once, in the history by reference (DU-08)."""

from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from tests.parts import settings
from tests.scripted_runs import RecordingModel, Run, call, calls, say

from daruma.graph.build import build_graph
from daruma.graph.storage.ledgers import outputs_of
from daruma.graph.storage.postgres import open_postgres
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import DamagedState, HoldLost
from daruma.state.text import REFERENCE

DIGEST = 8
"""Bytes that are stored with each value, by which it is known to be whole."""

BIG = "".join(f"{n} " for n in range(20_000))


def big() -> str:
    """Say very much."""
    return BIG


def reading(id_: str) -> list[Any]:
    read = call("read_output", id=id_, offset=60_000, length=50)
    return [calls({"name": "big"}), calls(read), say()]


@pytest.mark.parametrize("place", ["postgres", "memory", "none"])
def test_a_run_reads_on_in_what_was_left_out(place: str, postgres_url: str) -> None:
    """The tool that does is shown from then on; without a checkpointer it works within the run."""
    id_ = reference()
    model = RecordingModel(script={"main": reading(id_)})
    given = settings()
    with open_postgres(postgres_url) if place == "postgres" else nullcontext() as postgres:
        saver = InMemorySaver() if place == "memory" else None
        graph: Any = build_graph(model, [big], given, persistence=postgres, checkpointer=saver)
        ended = graph.invoke(
            {"messages": [("user", "Do it")]}, {"configurable": {"thread_id": "t"}}
        )

    results = [message for message in ended["messages"] if message.type == "tool"]
    assert results[0].additional_kwargs == {REFERENCE: id_}
    assert len(results[0].text) <= given.tools.max_result_chars
    assert results[1].text == f"[characters 60000 to 60050 of {len(BIG)}]\n{BIG[60000:60050]}"
    assert results[1].additional_kwargs == {}


def reference() -> str:
    import hashlib

    return hashlib.sha256(BIG.encode()).hexdigest()[:16]


def test_what_is_large_is_in_the_database_once(postgres_url: str) -> None:
    """However often it comes; the checkpoints hold its ends."""
    with open_postgres(postgres_url) as postgres:
        model = RecordingModel(script={"main": [*[calls({"name": "big"})] * 2, say(), say()]})
        run = Run({"main": []}, graph=build_graph(model, [big], settings(), persistence=postgres))
        run.ask()
        with psycopg.connect(postgres_url) as connection:
            kept = connection.execute("SELECT thread_id, length(output) FROM daruma_outputs")
            assert kept.fetchall() == [("t", len(BIG) + DIGEST)]
            found = connection.execute("SELECT max(octet_length(blob)) FROM checkpoint_writes")
            assert (found.fetchone() or (0,))[0] < 25_000


def test_a_damaged_output_is_named(postgres_url: str) -> None:
    """DU-05: the next reader is told, and is not given another text."""
    with open_postgres(postgres_url) as postgres:
        outputs = postgres.checkpointer.outputs
        run_on_loop(outputs.keep("t", "one", "kept"))
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE daruma_outputs SET output = set_byte(output, 9, 0)")

        with pytest.raises(DamagedState, match="the output one of thread 't': a value is not what"):
            run_on_loop(outputs.read("t", "one"))


async def test_who_has_lost_the_thread_keeps_nothing(postgres_url: str) -> None:
    """DU-03: the fence stands before outputs too."""
    with open_postgres(postgres_url) as postgres:
        saver = postgres.checkpointer
        hold = await saver.leases.atake("t")
        await outputs_of(saver.held(hold)).keep("t", "one", "1")
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE daruma_leases SET token = token + 1")

        with pytest.raises(HoldLost):
            await outputs_of(saver.held(hold)).keep("t", "two", "2")

        await saver.leases.agive_back(hold)
        assert await outputs_of(saver).read("t", "one") == "1"
        assert await outputs_of(saver).read("t", "two") is None
