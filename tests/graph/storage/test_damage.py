"""A checkpoint that is damaged is refused, and the one before it can be resumed (DU-05)."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.crash_driver import NEVER, graph_over
from tests.damages import (
    DAMAGES,
    KEY,
    THREAD,
    at_the_end,
    deleted_one_by_one,
    essence,
    finished,
    killed_before,
    restored,
)

from daruma.graph.storage.postgres import open_postgres
from daruma.state.storage import DamagedState


@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_damaged_in_any_way_a_thread_ends_as_if_it_were_whole(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """It is refused by name, and taken up from the checkpoint that the refusal names.

    What was paid before is not paid again: the tasks of that checkpoint stay done.
    """
    folder = tmp_path / "paid"
    with open_postgres(postgres_url, key=key) as pg:
        whole = essence(finished(pg, folder))
        graph = graph_over(pg, "paid", folder, NEVER)
        killed_before(postgres_url, graph, "settle")
        newest = graph.get_state(THREAD).config["configurable"]["checkpoint_id"]
        for name, statement in DAMAGES.items():
            with restored(postgres_url) as connection:
                assert connection.execute(statement.encode()).rowcount > 0, name

                with pytest.raises(DamagedState) as refused:
                    graph.get_state(THREAD)
                with pytest.raises(DamagedState, match="checkpoint"):
                    graph.invoke(None, THREAD)
                assert f"checkpoint {newest} of thread 't': " in str(refused.value), name
                again = at_the_end(graph, None, point_of(refused.value))

                assert essence(again) == whole, name
    assert folder.with_suffix(".ledger").read_text().split() == ["5", "7"]


def point_of(error: DamagedState) -> Any:
    """The config that an error says one can go on with."""
    found = re.search(r"the one before it, (\S+), is whole", str(error))
    assert found, error
    return {"configurable": {"thread_id": "t", "checkpoint_id": found[1]}}


@pytest.mark.parametrize("key", [None, KEY], ids=["checked", "sealed"])
def test_a_row_that_is_deleted_is_missed_or_was_not_needed(
    postgres_url: str, tmp_path: Path, key: bytes | None
) -> None:
    """Any row of a thread: a state is refused, or it is the very same state."""
    with open_postgres(postgres_url, key=key) as pg:
        finished(pg, tmp_path / "paid")
        graph = graph_over(pg, "paid", tmp_path / "paid", NEVER)
        killed_before(postgres_url, graph, "settle")
        whole, missed = graph.get_state(THREAD), 0
        newest = whole.config["configurable"]["checkpoint_id"]
        with restored(postgres_url) as connection:
            for table, row in deleted_one_by_one(connection):
                try:
                    read = graph.get_state(THREAD)
                except DamagedState:
                    missed += 1
                else:
                    earlier = (table, row.get("checkpoint_id")) == ("checkpoints", newest)
                    assert earlier or read.values == whole.values, (table, row)
    assert missed > 20
