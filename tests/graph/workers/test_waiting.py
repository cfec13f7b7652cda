"""Threads that wait for a person cost nothing: no process, no connection, no memory (DU-02)."""

import gc
import os
from pathlib import Path

import psycopg
from tests.parts import settings
from tests.scripted_runs import phases

from daruma.graph.build import build_graph
from daruma.graph.models.scripted import ScriptedChatModel
from daruma.graph.storage.postgres import aopen_postgres
from daruma.graph.workers.submit import asubmit
from daruma.graph.workers.work import awork

PLANNED = {"messages": [("user", "Do it")], "mode": "plan_exec"}
WARM, WAITING = 40, 200
OBJECTS = 25
"""A run that is not let go of holds hundreds; new connections bring a few of their own."""


def connections(url: str) -> int:
    """How many connections there are to a database, but for the one that asks."""
    with psycopg.connect(url) as connection:
        counted = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        row = connection.execute(counted).fetchone()
    assert row
    return int(row[0]) - 1


def objects() -> int:
    """How many objects this process holds."""
    gc.collect()
    return len(gc.get_objects())


def kilobytes() -> int:
    """How much memory this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


async def test_two_hundred_waiting_threads_hold_nothing(postgres_url: str) -> None:
    """What ran them holds next to nothing for each, uses no connection, and can be closed."""
    seen = []
    async with aopen_postgres(postgres_url) as pg:
        model = ScriptedChatModel(script={"plan": [phases("one")]})
        graph = build_graph(model, (), settings(), persistence=pg)
        for first, last in ((0, WARM), (WARM, WARM + WAITING)):
            for number in range(first, last):
                await asubmit(pg, PLANNED, f"t{number}")
            await awork(graph, concurrency=4, wait=False)
            seen.append((objects(), kilobytes()))
        stats = pg.pool.get_stats()
        last_one = await graph.aget_state({"configurable": {"thread_id": f"t{number}"}})

    (before, small), (after, large) = seen
    assert last_one.interrupts
    assert stats["pool_available"] == stats["pool_size"]
    assert connections(postgres_url) == 0
    assert after - before < OBJECTS * WAITING
    assert (large - small) / WAITING < 20
