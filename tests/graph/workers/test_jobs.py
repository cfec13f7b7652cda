"""A submission comes into the queue once, over whatever connections (DU-04, DU-07)."""

import psycopg
import pytest
from tests.fault_proxy import Fate, FaultProxy, fault_proxy, once, passing

from daruma.graph.storage.postgres import Postgres, open_postgres
from daruma.graph.sync import run
from daruma.graph.workers.queue import queue
from daruma.graph.workers.submission import Submission


def put(pg: Postgres, name: str) -> None:
    database = pg.checkpointer.database
    run(queue(database, Submission("t", None, name=name), "q"), loop=database.loop)


def count_of(pg: Postgres, proxy: FaultProxy) -> int:
    """How many messages it takes to queue a submission; the tables are made before."""
    put(pg, "first")
    proxy.count_from_here(passing)
    put(pg, "counted")
    return proxy.messages


@pytest.mark.parametrize("fate", ["cut before", "cut after"])
def test_a_submission_is_queued_once_whichever_message_is_lost(
    postgres_url: str, fate: Fate
) -> None:
    """What the queue makes of a lost connection is ridden out as any other; for every message."""
    with fault_proxy(postgres_url) as proxy, open_postgres(proxy.url) as pg:
        count = count_of(pg, proxy)
        for number in range(count):
            proxy.count_from_here(once(number, fate))
            put(pg, f"s{number}")
            proxy.mend()

    with psycopg.connect(postgres_url) as connection:
        names = connection.execute("SELECT args #>> '{submission,name}' FROM procrastinate_jobs")
        queued = sorted(name for (name,) in names)
    assert queued == sorted(["first", "counted", *(f"s{number}" for number in range(count))])
