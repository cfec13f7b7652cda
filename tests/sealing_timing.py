"""Times what checking and sealing cost: ``python -m tests.sealing_timing``.

One thread of 60 steps, each a model call without delay and a tool call of 1 KB, on the embedded
Postgres: with LangGraph's own reading and writing, with digests and manifests, and sealed. Rounds
take turns, so that what else the machine does hits all three.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.conninfo import make_conninfo

from daruma import ScriptedChatModel, Settings, build_graph, open_postgres
from daruma.graph.storage.embedded import embedded_postgres
from daruma.graph.storage.saver import PostgresSaver

STEPS = 60
ROUNDS = 7
WAYS: dict[str, bytes | None] = {"stock": None, "checked": None, "sealed": bytes(32)}
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
SIZE = (
    "SELECT sum(pg_column_size(t.*)) FROM checkpoints t UNION ALL SELECT sum(pg_column_size(t.*)) "
    "FROM checkpoint_blobs t UNION ALL SELECT sum(pg_column_size(t.*)) FROM checkpoint_writes t"
)


class Stock(PostgresSaver):
    """Our saver, reading and writing as LangGraph does."""

    SELECT_SQL = AsyncPostgresSaver.SELECT_SQL
    UPSERT_CHECKPOINTS_SQL = AsyncPostgresSaver.UPSERT_CHECKPOINTS_SQL
    _dump_blobs = AsyncPostgresSaver._dump_blobs
    _dump_writes = AsyncPostgresSaver._dump_writes
    _load_checkpoint_tuple = AsyncPostgresSaver._load_checkpoint_tuple
    _try_advance_walks = staticmethod(AsyncPostgresSaver._try_advance_walks)

    def _build_delta_channels_writes_history(self, **found: Any) -> Any:
        return AsyncPostgresSaver._build_delta_channels_writes_history(self, **found)

    async def _put(self, config: RunnableConfig, *args: Any, **kwargs: Any) -> RunnableConfig:
        return await AsyncPostgresSaver.aput(self, config, *args, **kwargs)

    async def _history(self, config: RunnableConfig, channels: Any) -> Any:
        return await AsyncPostgresSaver.aget_delta_channel_history(
            self, config=config, channels=channels
        )


def note(number: int) -> str:
    """Note a number."""
    return f"{number:04} " * 200


def once(url: str, way: str) -> tuple[float, float, int]:
    """Return milliseconds a step, milliseconds of reading the whole state, and kilobytes."""
    calls: list[Any] = [
        {"calls": [{"name": "note", "args": {"number": number}}]} for number in range(STEPS)
    ]
    settings = Settings.model_validate({"budgets": {"think": 999, "max_steps": 999}})
    with open_postgres(url, key=WAYS[way]) as pg:
        if way == "stock":
            pg.checkpointer.__class__ = Stock
        model = ScriptedChatModel(script={"main": [*calls, {"say": "Done."}]})
        graph: Any = build_graph(model, [note], settings, persistence=pg)
        started = time.perf_counter()
        ended = graph.invoke({"messages": [("user", "Note")], "mode": "react"}, THREAD)
        ran = time.perf_counter() - started
        assert ended["result"].completed, ended["result"]
        started = time.perf_counter()
        for _ in range(10):
            graph.get_state(THREAD)
        read = (time.perf_counter() - started) / 10
    with psycopg.connect(url) as connection:
        size = sum(row[0] for row in connection.execute(SIZE).fetchall())
    return 1000 * ran / STEPS, 1000 * read, size // 1024


def main() -> None:
    seen: dict[str, list[tuple[float, float, int]]] = {way: [] for way in WAYS}
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
    base = [statistics.median(column) for column in zip(*seen["stock"], strict=True)]
    for way, rounds in seen.items():
        medians = [statistics.median(column) for column in zip(*rounds, strict=True)]
        ratios = [mine / other for mine, other in zip(medians, base, strict=True)]
        step, read, size = medians
        sys.stdout.write(
            f"{way:8} {step:6.2f} ms a step (x{ratios[0]:.2f})  {read:6.2f} ms to read "
            f"(x{ratios[1]:.2f})  {size:6.0f} KB (x{ratios[2]:.2f})\n"
        )


if __name__ == "__main__":
    main()
