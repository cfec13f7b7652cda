"""Threads that wait for a person cost nothing: no process, no connection, no memory (DU-02)."""

import asyncio
import gc
import tracemalloc

from tests.parts import settings
from tests.scripted_runs import phases
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import Postgres, aopen_postgres
from daruma.graph.workers.submit import asubmit
from daruma.graph.workers.work import awork

PLANNED = {"messages": [("user", "Do it")], "mode": "plan_exec"}
WARM, WAITING = 20, 200
BYTES = 1024
"""What a waiting thread may leave in its process: nothing that grows is that small."""


async def connections(pg: Postgres, url: str) -> int:
    """How many connections there are to a database, but for the one that asks."""
    async with aopen_postgres(url) as other, other.pool.connection() as connection:
        counted = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
        row = await (await connection.execute(counted)).fetchone()
        assert row
        return int(row["n"])


async def test_two_hundred_waiting_threads_hold_nothing(postgres_url: str) -> None:
    """As many connections, and as much memory, as the worker had before them."""
    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script={"plan": [phases("one")]})
        graph = build_graph(model, (), settings(), persistence=pg)
        worker = asyncio.create_task(awork(graph, concurrency=4))
        seen = []
        for first, last in ((0, WARM), (WARM, WARM + WAITING)):
            with WorkerLines.heard() as lines:
                for number in range(first, last):
                    await asubmit(pg, PLANNED, f"t{number}")
                for _ in range(first, last):
                    await lines.until("waits for an answer")
            gc.collect()
            seen.append((await connections(pg, postgres_url), memory()))
        worker.cancel()
        await asyncio.wait([worker])
        tracemalloc.stop()

    (before, small), (after, large) = seen
    print(before, after, (large - small) / WAITING)
    assert after <= before
    assert (large - small) / WAITING < BYTES


def memory() -> int:
    """Bytes that are held now and were taken since this was asked first."""
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]
