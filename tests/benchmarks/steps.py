"""What a step of the tool loop costs beside that of peers: one model call and one tool call."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Final

from tests.benchmarks.ground import FACES, Face, Ground, Stores
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.running import Spent, run_once
from tests.benchmarks.systems import BARE, FREE, FULL, JOURNALLED, RAW, SYSTEMS
from tests.benchmarks.table import Options, Table
from tests.benchmarks.task import Task

SAVERS: Final = ("none", "Postgres")
_HEAD: Final = ("saver", "face", "system", "ms a step", "of a processor", "of the raw loop")
_TOLD: Final = (
    "{steps} steps, outputs of 1,000 characters, a scripted model without delay, a synchronous "
    "tool; medians of {pairs} rounds in shuffled order (lowest-highest). Of a "
    "processor: this process with all its threads, not Postgres. Postgres: the embedded one, "
    "durability `sync`, stock savers over a pool as documented; the raw loop commits once a step. "
    "Daruma runs under its default settings (learning on), with `max_steps` raised. Bare is "
    "`create_agent` with a prompt; the middlewares are retry, fallback, tool limit, "
    "summarisation, human-in-the-loop."
)
_OURS: Final = (
    "saver",
    "face",
    "system",
    "of bare",
    "its processor",
    "aim",
    "of 5 middlewares",
    "its processor",
    "aim",
)
_OURS_TOLD: Final = "The same runs, compared round by round: by the clock, and of a processor."
AIMS: Final = {
    ("none", FREE, BARE): "1.0",
    ("none", JOURNALLED, BARE): "1.0",
    ("Postgres", FREE, BARE): "0.7",
    ("Postgres", JOURNALLED, BARE): "1.0",
    ("Postgres", FREE, FULL): "0.4",
    ("Postgres", JOURNALLED, FULL): "0.6",
}
"""What a step of ours may cost of a step of a peer's."""

Seen = Mapping[str, Sequence[Spent]]


def measure(ground: Ground, options: Options) -> list[Table]:
    """Measure each system with both faces, without a saver and on Postgres."""
    steps = options.steps or 100
    rows: list[tuple[str, ...]] = []
    ours: list[tuple[str, ...]] = []
    samples: dict[str, list[float]] = {}
    for saver, face in product(SAVERS, FACES):
        seen = measured(ground, saver, face, steps, options)
        rows += [(saver, face, *_cells(seen, name)) for name in seen]
        ours += [(saver, face, *_beside(seen, name, saver)) for name in (FREE, JOURNALLED)]
        for name, each in seen.items():
            samples[f"{saver}, {face}, {name}: clock"] = clock(each)
            samples[f"{saver}, {face}, {name}: processor"] = processor(each)
    told = _TOLD.format(steps=steps, pairs=options.pairs)
    return [
        Table("steps", "A step of the tool loop", _HEAD, rows, told, samples),
        Table("steps", "Daruma's step, of that of `create_agent`", _OURS, ours, _OURS_TOLD),
    ]


def measured(
    ground: Ground, saver: str, face: Face, steps: int, options: Options
) -> dict[str, list[Spent]]:
    """Return what each system spent a step in each round."""
    stores = ground.stores[face] if saver == "Postgres" else Stores()
    ways = {}
    for name, build in SYSTEMS.items():
        task = Task(steps)
        ways[name] = partial(run_once, ground, face, build(task, stores), task)
    return in_turns(ways, options.pairs, options.seed, warm=options.warm)


def _cells(seen: Seen, name: str) -> tuple[str, ...]:
    mine, floor = seen[name], seen[RAW]
    beside = ratios(clock(mine), clock(floor))
    return name, Spread.of(clock(mine)).text(), Spread.of(processor(mine)).text(), beside.text()


def _beside(seen: Seen, name: str, saver: str) -> tuple[str, ...]:
    cells = [name]
    for peer in (BARE, FULL):
        mine, other = seen[name], seen[peer]
        cells += [
            ratios(clock(mine), clock(other)).text(2),
            ratios(processor(mine), processor(other)).text(2),
            AIMS.get((saver, name, peer), ""),
        ]
    return tuple(cells)


def clock(seen: Sequence[Spent]) -> list[float]:
    """Return milliseconds a step, by the clock."""
    return [spent.clock for spent in seen]


def processor(seen: Sequence[Spent]) -> list[float]:
    """Return milliseconds a step of a processor, which other work changes less."""
    return [spent.processor for spent in seen]
