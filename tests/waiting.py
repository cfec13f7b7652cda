"""What threads cost that wait for a person: ``python -m tests.waiting [THREADS]``, 200 if not said.

Objects and kilobytes of the process that ran them, and connections that it still uses.
"""

import asyncio
import gc
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import psycopg
from tests.parts import settings
from tests.scripted_runs import phases

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.storage import aopen_postgres
from daruma.graph.storage._embedded import embedded_postgres
from daruma.graph.workers import asubmit, awork

PLANNED = {"messages": [("user", "Do it")], "mode": "plan_exec"}
WARM = 40
"""Threads after which a process has all that it needs for any number of them."""


@dataclass(frozen=True)
class Cost:
    """What threads cost, each, while they wait; how many of the pool's connections are in use."""

    objects: float
    kilobytes: float
    used: int
    left: int
    """Connections to the database once it was closed."""

    waiting: bool
    """Whether the last of them does wait."""


async def cost_of(url: str, threads: int) -> Cost:
    """Have a worker run threads until each waits for a person, and see what they hold."""
    seen = []
    async with aopen_postgres(url) as pg:
        model = ScriptedChatModel(script={"plan": [phases("one")]})
        graph = build_graph(model, (), settings(), persistence=pg)
        for first, last in ((0, WARM), (WARM, WARM + threads)):
            for number in range(first, last):
                await asubmit(pg, PLANNED, f"t{number}")
            await awork(graph, concurrency=4, wait=False)
            seen.append((_objects(), _kilobytes()))
        stats = pg.pool.get_stats()
        last_one = await graph.aget_state({"configurable": {"thread_id": f"t{last - 1}"}})
    (before, small), (after, large) = seen
    return Cost(
        objects=(after - before) / threads,
        kilobytes=(large - small) / threads,
        used=stats["pool_size"] - stats["pool_available"],
        left=_connections(url),
        waiting=bool(last_one.interrupts),
    )


def _connections(url: str) -> int:
    """Return how many there are that stay: the server ends a closed one's process a bit later."""
    counted = "SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()"
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(100):
            row = connection.execute(counted).fetchone()
            if row == (0,):
                break
            connection.execute("SELECT pg_sleep(0.05)")
    return int(row[0]) if row else 0


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def _kilobytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def main(args: list[str]) -> None:
    """Measure on an embedded Postgres, and print the figures."""
    threads = int(args[0]) if args else 200
    with tempfile.TemporaryDirectory(prefix="daruma-waiting-") as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with embedded_postgres(Path(folder) / "server") as server:
            cost = asyncio.run(cost_of(server, threads))
    sys.stdout.write(
        f"{threads} waiting threads: {cost.objects:.1f} objects and {cost.kilobytes:.1f} KB each, "
        f"{cost.used} connections in use, {cost.left} once closed\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
