"""Times what sealing costs: ``python -m tests.sealing_timing``.

One thread of 60 steps, each a model call without delay and a tool call of 1 KB, on the embedded
Postgres: with digests and manifests, and sealed. Rounds take turns, so that what else the machine
does hits both. Beside the time by the clock stands
that of this process alone, which other work hardly changes.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from psycopg.conninfo import make_conninfo

from daruma import ScriptedChatModel, Settings, build_graph, open_postgres
from daruma.graph.storage._embedded import embedded_postgres

STEPS = 60
ROUNDS = 7
WAYS: dict[str, bytes | None] = {"checked": None, "sealed": bytes(32)}
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
UNITS = ("ms a step", "ms of processor a step", "ms of processor to read", "KB")
SIZE = (
    "SELECT sum(pg_column_size(t.*)) FROM daruma_checkpoints t "
    "UNION ALL SELECT sum(pg_column_size(t.*)) FROM daruma_blobs t "
    "UNION ALL SELECT sum(pg_column_size(t.*)) FROM daruma_writes t"
)


Seen = tuple[float, float, float, int]


def note(number: int) -> str:
    """Note a number."""
    return f"{number:04} " * 200


def once(url: str, way: str) -> Seen:
    """Return milliseconds a step, by the clock and of the processor, those of a read, kilobytes."""
    calls: list[Any] = [
        {"calls": [{"name": "note", "args": {"number": number}}]} for number in range(STEPS)
    ]
    settings = Settings.model_validate({"budgets": {"think": 999, "max_steps": 999}})
    with open_postgres(url, key=WAYS[way]) as pg:
        model = ScriptedChatModel(script={"main": [*calls, {"say": "Done."}]})
        graph: Any = build_graph(model, [note], settings, persistence=pg)
        started, begun = time.perf_counter(), time.process_time()
        ended = graph.invoke({"messages": [("user", "Note")], "mode": "react"}, THREAD)
        ran, worked = time.perf_counter() - started, time.process_time() - begun
        assert ended["result"].completed, ended["result"]
        begun = time.process_time()
        for _ in range(10):
            graph.get_state(THREAD)
        read = (time.process_time() - begun) / 10
    with psycopg.connect(url) as connection:
        size = sum(row[0] for row in connection.execute(SIZE).fetchall())
    return 1000 * ran / STEPS, 1000 * worked / STEPS, 1000 * read, size // 1024


def main() -> None:
    seen: dict[str, list[Seen]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with (
            embedded_postgres(Path(folder)) as server,
            psycopg.connect(server, autocommit=True) as administrator,
        ):
            for number in range(ROUNDS * len(WAYS)):
                way = [*WAYS][number % len(WAYS)]
                administrator.execute(f"CREATE DATABASE d{number}".encode())
                seen[way].append(once(make_conninfo(server, dbname=f"d{number}"), way))
    base = [statistics.median(column) for column in zip(*seen["checked"], strict=True)]
    for way, rounds in seen.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        ratios = [mine / other for mine, other in zip(medians, base, strict=True)]
        told = "  ".join(
            f"{value:7.2f} {unit} (x{ratio:.2f})"
            for value, unit, ratio in zip(medians, UNITS, ratios, strict=True)
        )
        sys.stdout.write(f"{way:8}{told}\n")


if __name__ == "__main__":
    main()
