"""A checkpoint whose row is changed tells the truth of itself, and damage is not covered up."""

from typing import Any

import psycopg
import pytest
from tests.damages import KEY
from tests.parts import settings
from tests.scripted_runs import Run, say

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.maintenance import Renewal
from daruma.graph.storage.manifest import NAME
from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.graph.sync import run as run_on_loop
from daruma.state.errors import DamagedState

ROW = """
SELECT parent_checkpoint_id, checkpoint, metadata FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""
COUNTERS = "counters_since_delta_snapshot"


def told(pg: Postgres) -> tuple[str, str, str]:
    """Run a thread, and name its newest checkpoint."""
    model = ScriptedChatModel(script={"main": [say()]})
    run = Run({"main": []}, graph=build_graph(model, [], settings(), persistence=pg)).ask()
    return "t", "", run.snapshot.config["configurable"]["checkpoint_id"]


def renewed(pg: Postgres, at: tuple[str, str, str]) -> None:
    renewal = Renewal("earlier", ["messages"])
    saver = pg.checkpointer
    run_on_loop(saver.transact(lambda connection: renewal.make(connection, at, saver.sealing)))


def row_at(url: str, at: tuple[str, str, str]) -> Any:
    with psycopg.connect(url) as connection:
        return connection.execute(ROW, at).fetchone()


@pytest.mark.parametrize("key", [None, KEY], ids=["clear", "sealed"])
def test_a_renewed_row_notes_its_parent_its_values_and_no_writes(
    postgres_url: str, key: bytes | None
) -> None:
    """Else a loss would be seen where nothing is lost, or none where something is."""
    with open_postgres(postgres_url, key=key) as pg:
        at = told(pg)
        _, before, counted = row_at(postgres_url, at)
        assert before[NAME]["writes"]
        assert "messages" in counted[COUNTERS]

        renewed(pg, at)

    parent, checkpoint, metadata = row_at(postgres_url, at)
    manifest = checkpoint[NAME]
    assert (parent, manifest["parent"], manifest["writes"]) == ("earlier", "earlier", {})
    assert manifest["blobs"] == sorted([*before[NAME]["blobs"], "messages"])
    assert checkpoint["channel_values"]["messages"] is True
    assert counted[COUNTERS].keys() - metadata[COUNTERS].keys() == {"messages"}
    assert manifest["mark"] != before[NAME]["mark"]


def test_a_damaged_row_is_not_marked_anew(postgres_url: str) -> None:
    """Its damage would be there for ever, and nobody could tell."""
    with open_postgres(postgres_url) as pg:
        at = told(pg)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE checkpoints SET metadata = jsonb_set(metadata, '{step}', '99')"
            )
        before = row_at(postgres_url, at)

        with pytest.raises(DamagedState, match="of thread 't': its row is not what was stored"):
            renewed(pg, at)

        assert row_at(postgres_url, at) == before
