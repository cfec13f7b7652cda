"""Many threads at once in one process: how many steps a second come of it."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tests.benchmarks.ground import Ground, Stores
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.running import durably, new_thread
from tests.benchmarks.systems import (
    BARE,
    FREE,
    JOURNALLED,
    STOCKED,
    bare,
    free,
    journalled,
    stocked,
)
from tests.benchmarks.table import Options, Table
from tests.benchmarks.task import ASKED, Task

Crowd = tuple[int, int]
"""How many threads run at once, and the steps of each."""

_SHORT: Final = 10
_LONG: Final = 50
_LONG_CROWD: Final = 50
_OWN: Final = f"{BARE}, a saver a run"
_HEAD: Final = ("threads", "steps each", "system", "steps a second", f"of {BARE}")
_TOLD: Final = (
    "Outputs of 1,000 characters, one process with one loop, durability `sync`; medians of {pairs} "
    "rounds in shuffled order (lowest-highest). Daruma: one graph for all threads, on its own "
    "saver or on one `AsyncPostgresSaver`. "
    "`create_agent`: one graph over one `AsyncPostgresSaver`, "
    "or a graph and a saver for each run, over one pool of 20 connections; graphs are built "
    "before the clock starts. One process can learn from some tasks at once only; the others of "
    "a crowd are left out."
)

_BUILDS: Final = {BARE: bare, FREE: free, JOURNALLED: journalled, STOCKED: stocked}

Run = tuple[Any, Task]


def measure(ground: Ground, options: Options) -> list[Table]:
    """Measure crowds of threads."""
    rows: list[tuple[str, ...]] = []
    samples: dict[str, list[float]] = {}
    for at, (threads, steps) in enumerate(crowds(options)):
        ways = _ways(ground, threads, steps)
        seen = in_turns(ways, options.pairs, options.seed, warm=options.warm and not at)
        rows += [(str(threads), str(steps), name, *_cells(seen, name)) for name in seen]
        samples |= {f"{threads}, {steps} steps, {name}": each for name, each in seen.items()}
    told = _TOLD.format(pairs=options.pairs)
    return [Table("threads", "Many threads at once", _HEAD, rows, told, samples)]


def crowds(options: Options) -> list[Crowd]:
    """Return the crowds to measure: of short runs and, unless steps are said, one of longer ones.

    A stock saver takes longer with each step; of a short run much is its begin and its end.
    """
    if options.steps:
        return [(threads, options.steps) for threads in options.crowds]
    return [*((threads, _SHORT) for threads in options.crowds), (_LONG_CROWD, _LONG)]


def _ways(ground: Ground, threads: int, steps: int) -> Mapping[str, Callable[[], float]]:
    stores = ground.stores["async"]
    ways: dict[str, Callable[[], float]] = {}
    for name, build in _BUILDS.items():
        task = Task(steps)
        agent = build(task, stores)
        ways[name] = partial(_rate, ground, [(agent, task)] * threads)
    own = ground.runner.run(_with_own_savers(stores, steps, threads))
    ways[_OWN] = partial(_rate, ground, own)
    return ways


async def _with_own_savers(stores: Stores, steps: int, threads: int) -> list[Run]:
    assert isinstance(stores.stock, AsyncPostgresSaver)
    pool = stores.stock.conn
    tasks = [Task(steps) for _ in range(threads)]
    return [(bare(task, Stores(stock=AsyncPostgresSaver(pool))), task) for task in tasks]


def _rate(ground: Ground, runs: Sequence[Run]) -> float:
    before = _called(runs)
    began = time.perf_counter()
    ground.runner.run(_all(runs))
    took = time.perf_counter() - began
    done = _called(runs) - before
    assert done == sum(task.steps for _, task in runs), f"{done} calls"
    if evolution := getattr(runs[0][0], "evolution", None):
        ground.runner.run(evolution.adrain())
    return done / took


async def _all(runs: Sequence[Run]) -> None:
    await asyncio.gather(
        *(agent.ainvoke(ASKED, new_thread(task), **durably(agent)) for agent, task in runs)
    )


def _called(runs: Sequence[Run]) -> int:
    return sum({id(task): task.calls for _, task in runs}.values())


def _cells(seen: Mapping[str, Sequence[float]], name: str) -> tuple[str, str]:
    return Spread.of(seen[name]).text(0), ratios(seen[name], seen[BARE]).text(2)
