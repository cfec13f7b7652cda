"""A durable step beside the floor: a loop that commits what is new once a step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import Connection
from tests.benchmarks.counters import StepCounters, Written
from tests.benchmarks.ground import Ground
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.running import Spent, run_once
from tests.benchmarks.systems import BARE, DEEP, FREE, JOURNALLED, PLAIN, RAW, SYSTEMS
from tests.benchmarks.table import Options, Table
from tests.benchmarks.task import Task

NAMES: Final = tuple(n for n in (RAW, PLAIN, BARE, DEEP, FREE, JOURNALLED) if n in SYSTEMS)
_HEAD: Final = (
    "system",
    "ms a step",
    "of the floor",
    "processor, of the floor",
    "write transactions a step",
    "bytes of WAL a step",
)
_TOLD: Final = (
    "{steps} steps, outputs of 1,000 characters, asynchronous callers, durability `sync`; medians "
    "of {pairs} rounds in shuffled order (lowest-highest). Counted between the first and the last "
    "tool call: transaction ids that the server gave out, and what its log grew by."
)


@dataclass(frozen=True)
class Durable:
    """What a step took, and what it wrote."""

    spent: Spent
    written: Written


def measure(ground: Ground, options: Options) -> list[Table]:
    """Measure systems on Postgres."""
    steps = options.steps or 100
    with psycopg.connect(ground.urls["raw"], autocommit=True) as other:
        ways = {name: _way(ground, name, steps, other) for name in NAMES}
        seen = in_turns(ways, options.pairs, options.seed, warm=options.warm)
    told = _TOLD.format(steps=steps, pairs=options.pairs)
    rows = [(name, *_cells(seen, name)) for name in NAMES]
    return [Table("floor", "A durable step beside the floor", _HEAD, rows, told, _samples(seen))]


def _way(ground: Ground, name: str, steps: int, other: Connection[Any]) -> Callable[[], Durable]:
    task = Task(steps)
    agent = SYSTEMS[name](task, ground.stores["async"])
    counters = StepCounters(other, task)

    def way() -> Durable:
        return Durable(run_once(ground, "async", agent, task), counters.a_step())

    return way


def _cells(seen: Mapping[str, Sequence[Durable]], name: str) -> tuple[str, ...]:
    mine, floor = seen[name], seen[RAW]
    clock = [each.spent.clock for each in mine]
    own = [each.spent.processor for each in mine]
    return (
        Spread.of(clock).text(),
        ratios(clock, [each.spent.clock for each in floor]).text(),
        ratios(own, [each.spent.processor for each in floor]).text(),
        Spread.of(each.written.transactions for each in mine).text(2),
        Spread.of(each.written.wal for each in mine).text(0),
    )


def _samples(seen: Mapping[str, Sequence[Durable]]) -> dict[str, list[float]]:
    found = {}
    for name, rounds in seen.items():
        found[f"{name}: clock"] = [each.spent.clock for each in rounds]
        found[f"{name}: processor"] = [each.spent.processor for each in rounds]
        found[f"{name}: transactions"] = [each.written.transactions for each in rounds]
        found[f"{name}: wal"] = [each.written.wal for each in rounds]
    return found
