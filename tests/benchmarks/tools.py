"""Eight slow tools in one answer: whether they run at once, and whom they keep waiting."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Final

from tests.benchmarks.ground import FACES, Face, Ground, Stores
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.running import durably, new_thread, run_once
from tests.benchmarks.systems import BARE, FREE, bare, free
from tests.benchmarks.table import Options, Table
from tests.benchmarks.task import ASKED, Task

AT_ONCE: Final = 8
WAIT: Final = 0.05
_BUILDS: Final = {BARE: bare, FREE: free}
_HEAD: Final = ("caller", "tools", "system", "the whole run", "the step alone")
_TOLD: Final = (
    "8 calls in one answer, each waits 50 ms; as multiples of 50 ms the whole run, from request to "
    "final answer, without a saver, and the step alone, from the model's answer with the calls to "
    "its next request, measured in the scripted model that both have; medians of {pairs} rounds in "
    "shuffled order (lowest-highest). `create_agent` can not be called synchronously with "
    "asynchronous tools."
)
_BESIDE: Final = (
    "system",
    "ms a step alone",
    "beside 8 async tools",
    "of alone",
    "beside 8 blocking tools",
    "of alone",
)
_BESIDE_TOLD: Final = (
    "A thread of {steps} steps alone, and while another thread of the process calls 8 tools of "
    "50 ms again and again: asynchronous ones, which take their share of the processor, and "
    "blocking ones, which could also keep it from writing; asynchronous callers, Postgres, "
    "durability `sync`; medians of {pairs} rounds (lowest-highest)."
)


def measure(ground: Ground, options: Options) -> list[Table]:
    """Measure slow tools, and a thread beside them."""
    return [_at_once(ground, options), _beside(ground, options)]


def _at_once(ground: Ground, options: Options) -> Table:
    rows: list[tuple[str, ...]] = []
    samples: dict[str, list[float]] = {}
    for face, blocking in product(FACES, (True, False)):
        kind = "blocking" if blocking else "async"
        seen = in_turns(
            _ways(ground, face, blocking), options.pairs, options.seed, warm=options.warm
        )
        for name in _BUILDS:
            took = seen.get(name, ())
            ways = {"whole run": [each.whole for each in took], "step": [e.step for e in took]}
            rows.append((face, kind, name, *map(_cell, ways.values())))
            samples |= {f"{face}, {kind}, {name}, {way}": each for way, each in ways.items()}
    told = _TOLD.format(pairs=options.pairs)
    return Table("tools", "Eight slow tools at once", _HEAD, rows, told, samples)


@dataclass(frozen=True)
class _Took:
    """Multiples of one tool's time: of the whole run, and from its one step's calls to its end."""

    whole: float
    step: float


def _cell(took: Sequence[float]) -> str:
    return Spread.of(took).text(2) if took else "-"


def _ways(ground: Ground, face: Face, blocking: bool) -> Mapping[str, Callable[[], _Took]]:
    ways = {}
    for name, build in _BUILDS.items():
        if (name, face, blocking) != (BARE, "sync", False):
            task = Task(1, at_once=AT_ONCE, wait=WAIT, blocking=blocking)
            ways[name] = partial(_took, ground, face, build(task, Stores()), task)
    return ways


def _took(ground: Ground, face: Face, agent: Any, task: Task) -> _Took:
    clock = run_once(ground, face, agent, task).clock
    return _Took(clock / (1000 * WAIT), task.model.between / WAIT)


def _beside(ground: Ground, options: Options) -> Table:
    steps = options.steps or 20
    ways: dict[str, Callable[[], float]] = {}
    for name, build in _BUILDS.items():
        task = Task(steps)
        agent = build(task, ground.stores["async"])
        ways[f"{name} alone"] = partial(_alone, ground, agent, task)
        for kind in ("async", "blocking"):
            noise = Task(1, at_once=AT_ONCE, wait=WAIT, blocking=kind == "blocking")
            noisy = build(noise, ground.stores["async"])
            ways[f"{name} {kind}"] = partial(_disturbed, ground, agent, task, noisy, noise)
    seen = in_turns(ways, options.pairs, options.seed, warm=options.warm)
    rows = [(name, *_cells(seen, name)) for name in _BUILDS]
    told = _BESIDE_TOLD.format(steps=steps, pairs=options.pairs)
    return Table("tools", "A thread beside eight blocking tools", _BESIDE, rows, told, seen)


def _cells(seen: Mapping[str, Sequence[float]], name: str) -> tuple[str, ...]:
    alone = seen[f"{name} alone"]
    beside = (seen[f"{name} {kind}"] for kind in ("async", "blocking"))
    both = [(Spread.of(each).text(), ratios(each, alone).text(2)) for each in beside]
    return Spread.of(alone).text(), *both[0], *both[1]


def _alone(ground: Ground, agent: Any, task: Task) -> float:
    return run_once(ground, "async", agent, task).clock


def _disturbed(ground: Ground, agent: Any, task: Task, noisy: Any, noise: Task) -> float:
    begun = threading.Event()
    noise.at_call = lambda _: begun.set()
    stop = asyncio.Event()
    loop = ground.runner.get_loop()
    disturbing = loop.create_task(_disturb(noisy, noise, stop))
    try:
        ground.runner.run(asyncio.to_thread(begun.wait))
        return run_once(ground, "async", agent, task).clock
    finally:
        stop.set()
        ground.runner.run(_ended(disturbing))


async def _disturb(noisy: Any, noise: Task, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await noisy.ainvoke(ASKED, new_thread(noise), **durably(noisy))


async def _ended(disturbing: "asyncio.Task[None]") -> None:
    await disturbing
