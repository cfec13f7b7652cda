"""One long thread, step by step: what stretches of it cost in time and in bytes."""

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from langchain_core.runnables import RunnableConfig
from psycopg import Connection
from tests.benchmarks.running import durably, new_thread
from tests.benchmarks.task import ASKED, Task

_BYTES: Final = {
    **dict.fromkeys(
        ("checkpoint_blobs", "checkpoint_writes", "daruma_blobs", "daruma_writes"),
        "octet_length(blob)",
    ),
    **dict.fromkeys(
        ("checkpoints", "daruma_checkpoints"),
        "octet_length(checkpoint::text) + octet_length(metadata::text)",
    ),
    "daruma_outputs": "octet_length(output)",
    "daruma_effects": "octet_length(t::text)",
}
"""What a thread's rows hold in LangGraph's tables or ours, before Postgres compresses it."""

_TOOL_NODES: Final = {"tool", "tools"}


@dataclass(frozen=True)
class Mark:
    """How far a thread had come after a number of steps: seconds run, bytes kept."""

    steps: int
    clock: float = 0.0
    processor: float = 0.0
    """Seconds of a processor that this process took: on a busy machine they tell more."""
    kept: int = 0

    def since(self, other: "Mark") -> "Mark":
        """Return what the stretch between two marks came to."""
        return Mark(
            self.steps - other.steps,
            self.clock - other.clock,
            self.processor - other.processor,
            self.kept - other.kept,
        )


async def long_thread(agent: Any, task: Task, url: str, at: Collection[int]) -> dict[int, Mark]:
    """Run a task on a new thread of a database, and mark it after each number of steps in ``at``.

    The clocks stand still while bytes are counted.
    """
    config = new_thread(task)
    marks, done, clock, processor = {0: Mark(0)}, 0, 0.0, 0.0
    with psycopg.connect(url, autocommit=True) as other:
        since, began = time.perf_counter(), time.process_time()
        parts = agent.astream(ASKED, config, stream_mode="updates", **durably(agent))
        async for part in parts:
            done += bool(_TOOL_NODES & set(part))
            if done in at and done not in marks:
                clock += time.perf_counter() - since
                processor += time.process_time() - began
                marks[done] = Mark(done, clock, processor, _kept(other, config))
                since, began = time.perf_counter(), time.process_time()
    assert task.calls == task.steps * task.at_once, f"{task.calls} calls"
    return marks


def _kept(connection: Connection[Any], config: RunnableConfig) -> int:
    thread = config["configurable"]["thread_id"]
    rows = "SELECT tablename FROM pg_tables WHERE tablename = ANY (%s)"
    found = [row[0] for row in connection.execute(rows, [list(_BYTES)])]
    sums = [
        f"(SELECT coalesce(sum({_BYTES[name]}), 0) FROM {name} t WHERE thread_id = %(thread)s)"  # noqa: S608
        for name in found
    ]
    row = connection.execute(f"SELECT {' + '.join(sums)}".encode(), {"thread": thread}).fetchone()
    return int(row[0]) if row else 0
