"""Threads that wait for a person cost nothing: no process, no connection, no memory (DU-02)."""

import asyncio
import gc
import os
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.parts import settings
from tests.scripted_runs import phases
from tests.worker_lines import WorkerLines

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.workers.submit import asubmit
from daruma.graph.workers.work import awork

PLANNED = {"messages": [("user", "Do it")], "mode": "plan_exec"}
WARM, WAITING = 20, 200


@dataclass(frozen=True)
class Held:
    """What this process holds: connections to a database, objects, and kilobytes."""

    connections: int
    objects: int
    kilobytes: int


def held(url: str) -> Held:
    """Look at it, leaving out the connection that asks."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    with psycopg.connect(url) as connection:
        counted = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        row = connection.execute(counted).fetchone()
    assert row
    return Held(row[0] - 1, len(gc.get_objects()), pages * os.sysconf("SC_PAGE_SIZE") // 1024)


async def test_two_hundred_waiting_threads_hold_nothing(postgres_url: str) -> None:
    """A worker has as many connections as before them, and less than an object for each."""
    seen = []
    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script={"plan": [phases("one")]})
        graph = build_graph(model, (), settings(), persistence=pg)
        worker = asyncio.create_task(awork(graph, concurrency=4))
        for first, last in ((0, WARM), (WARM, WARM + WAITING)):
            with WorkerLines.heard() as lines:
                for number in range(first, last):
                    await asubmit(pg, PLANNED, f"t{number}")
                for _ in range(first, last):
                    await lines.until("waits for an answer")
                lines.lines.clear()
            seen.append(held(postgres_url))
        worker.cancel()
        await asyncio.wait([worker])

    before, after = seen
    assert not seen
    assert after.connections <= before.connections
    assert after.objects - before.objects < WAITING
    assert (after.kilobytes - before.kilobytes) / WAITING < 20
