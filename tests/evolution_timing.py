"""What learning costs a run: ``python -m tests.evolution_timing [PAIRS]``, 15 if not said.

Runs with evolution and without take turns on one Postgres. Where evolution's store raises, hangs,
blocks its thread for good or is full, nothing of that may be felt. Seconds are medians.
"""

import asyncio
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from langgraph.store.base import BaseStore, Op, Result
from tests.evolution_stores import ILL, IllStore
from tests.parts import settings
from tests.scripted_runs import call, calls, say, shout
from typing_extensions import override

from daruma.graph.build import build_graph
from daruma.graph.models import ScriptedChatModel
from daruma.graph.run import Machine
from daruma.graph.storage import Postgres, open_postgres
from daruma.graph.storage._embedded import embedded_postgres

Way = Literal["invoke", "astream"]
KINDS: Final = ("normal", *ILL)
ASKED: Final[Any] = {"messages": [("user", "Do it")], "mode": "react"}
STEPS: Final = 6
_WARM: Final = 3


class OnPostgres(BaseStore):
    """A Postgres's store, but for what an ill one does with evolution's writes."""

    def __init__(self, postgres: Postgres, ill: IllStore) -> None:
        self.own, self.ill, self.database = postgres.store, ill, postgres.store.database

    @override
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.own.batch(ops)

    @override
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        await self.ill.suffer(given)
        return await self.own.abatch(given)


@dataclass(frozen=True)
class Cost:
    """Medians of seconds, with evolution and without, and what became of the tasks."""

    kind: str
    way: Way
    on: float
    off: float
    outcome: str

    @property
    def line(self) -> str:
        """It in words."""
        return (
            f"{self.kind:8} {self.way:8} with {self.on:.4f} s, without {self.off:.4f} s, "
            f"ratio {self.on / self.off:.3f}; {self.outcome}"
        )


def graph_on(postgres: Postgres, store: BaseStore, *, enabled: bool) -> Machine:
    """A graph whose task takes some steps, and is learned from, where it is, each time."""
    given = settings(
        evolution={"enabled": enabled, "success_sample_rate": 1.0}, sandbox={"require": "none"}
    )
    script = [*(calls(call(text=f"{number}")) for number in range(STEPS)), say()]
    model = ScriptedChatModel(script=script)
    return build_graph(model, [shout], given, postgres, store=store)


def seconds_of(graph: Machine, way: Way) -> float:
    """Seconds from the request to the answer."""
    config: Any = {"configurable": {"thread_id": uuid4().hex}}
    began = time.perf_counter()
    if way == "invoke":
        result = graph.invoke(ASKED, config)["result"]
    else:
        result = asyncio.run(_read(graph, config))
    took = time.perf_counter() - began
    assert result.completed
    return took


async def _read(graph: Machine, config: Any) -> Any:
    parts = graph.astream(ASKED, config, stream_mode="values")
    return [part async for part in parts][-1]["result"]


def cost_of(postgres: Postgres, kind: Any, way: Way, pairs: int) -> Cost:
    """Run pairs, taking turns who goes first, and compare."""
    ill = IllStore("none" if kind == "normal" else kind)
    on = graph_on(postgres, OnPostgres(postgres, ill), enabled=True)
    off = graph_on(postgres, postgres.store, enabled=False)
    with_it, without = list[float](), list[float]()
    for number in range(_WARM + pairs):
        both: list[tuple[Machine, Callable[[float], None]]] = [
            (on, with_it.append),
            (off, without.append),
        ]
        for graph, note in both if number % 2 else reversed(both):
            note(seconds_of(graph, way))
    on.evolution.drain(5.0 if kind == "normal" else 0.0)
    ill.release.set()
    outcome = str(on.evolution.counts)
    first, second = (statistics.median(each[_WARM:]) for each in (with_it, without))
    return Cost(kind, way, first, second, outcome)


def main(args: list[str]) -> None:
    """Measure on an embedded Postgres, and print the figures."""
    pairs = int(args[0]) if args else 15
    logging.getLogger("daruma.evolution").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="daruma-evolution-") as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as an account that has to get in
        with embedded_postgres(Path(folder) / "server") as server, open_postgres(server) as pg:
            for kind in KINDS:
                for way in ("invoke", "astream"):
                    sys.stdout.write(f"{cost_of(pg, kind, way, pairs).line}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
