"""What a step costs late in a long thread beside one at its beginning."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from tests.benchmarks.ground import Ground
from tests.benchmarks.long_thread import Mark, long_thread
from tests.benchmarks.pairs import Spread, in_turns, ratios
from tests.benchmarks.systems import BARE, bare, daruma
from tests.benchmarks.table import Options, Table
from tests.benchmarks.task import Task

STRETCHES: Final = ((2, 20), (90, 110), (390, 410), (980, 1000))
"""After which step each begins, and after which it ends."""

_PEER_STEPS: Final = 410  # it keeps the whole history with each step
_HEAD: Final = (
    "system, characters of an output",
    "steps",
    "ms a step",
    "of these asking the model",
    "of a processor",
    "bytes a step",
    "bytes a step so far",
)
_TOLD: Final = (
    "One thread, asynchronous caller, Postgres, durability `sync`, journalled tools{cap}; "
    "medians of {pairs} threads (lowest-highest). Bytes are those of the thread's rows, before "
    "Postgres compresses them; a stretch may hold a whole copy, which is rare. "
    "`create_agent` on the stock saver is shown to step 410."
)

Ways = Mapping[str, Callable[[], dict[int, Mark]]]


def measure(ground: Ground, options: Options) -> list[Table]:
    """Run long threads in turns, and compare stretches of them."""
    steps = options.steps or STRETCHES[-1][1]
    ways: dict[str, Callable[[], dict[int, Mark]]] = {
        f"Daruma, {size:,}": partial(_ours, ground, steps, size, options.budget)
        for size in (1000, 20_000)
    }
    ways[f"{BARE}, 1,000"] = partial(_peer, ground, min(steps, _PEER_STEPS))
    seen = in_turns(ways, options.pairs, options.seed, warm=False)
    cap = f", requests of at most {options.budget} tokens" if options.budget else ""
    told = _TOLD.format(cap=cap, pairs=options.pairs)
    rows = [row for name, threads in seen.items() for row in _rows(name, threads)]
    samples = {
        f"{name}: {mark}": [thread[mark].processor for thread in threads]
        for name, threads in seen.items()
        for mark in threads[0]
    }
    return [Table("growth", "A step late in a long thread", _HEAD, rows, told, samples)]


def stretches(steps: int) -> list[tuple[int, int]]:
    """Return the stretches of a thread of so many steps; a short one is cut in two."""
    within = [each for each in STRETCHES if each[1] <= steps]
    return within if len(within) > 1 else [(1, steps // 2), (steps // 2, steps)]


def _ours(ground: Ground, steps: int, size: int, budget: int | None) -> dict[int, Mark]:
    task = Task(steps, size=size)
    agent = daruma(task, ground.stores["async"], "external", budget)
    marks = _marks(ground, agent, task, "daruma")
    ground.runner.run(agent.evolution.adrain())
    return marks


def _peer(ground: Ground, steps: int) -> dict[int, Mark]:
    task = Task(steps)
    return _marks(ground, bare(task, ground.stores["async"]), task, "stock")


def _marks(ground: Ground, agent: object, task: Task, kind: str) -> dict[int, Mark]:
    at = {mark for stretch in stretches(task.steps) for mark in stretch}
    return ground.runner.run(long_thread(agent, task, ground.urls[kind], at))


def _rows(name: str, threads: Sequence[Mapping[int, Mark]]) -> list[tuple[str, ...]]:
    pairs = stretches(max(threads[0]))
    parts = [[thread[end].since(thread[begin]) for thread in threads] for begin, end in pairs]
    rows = [
        (name, f"{begin + 1}-{end}", *_cells(part, [thread[end] for thread in threads]))
        for (begin, end), part in zip(pairs, parts, strict=True)
    ]
    first, last = ([_so_far(thread[end]) for thread in threads] for _, end in (pairs[0], pairs[-1]))
    far = ratios(last, first).text(2)
    return [*rows, (name, "last/first", *_compared(parts[-1], parts[0]), far)]


def _cells(parts: Sequence[Mark], so_far: Sequence[Mark]) -> tuple[str, ...]:
    return (
        Spread.of(_ms(part.clock, part) for part in parts).text(),
        Spread.of(_ms(part.asking, part) for part in parts).text(),
        Spread.of(_ms(part.processor, part) for part in parts).text(),
        Spread.of(part.kept / part.steps for part in parts).text(0),
        Spread.of(_so_far(mark) for mark in so_far).text(0),
    )


def _compared(last: Sequence[Mark], first: Sequence[Mark]) -> tuple[str, ...]:
    columns = [
        ([_ms(part.clock, part) for part in last], [_ms(part.clock, part) for part in first]),
        ([_ms(part.asking, part) for part in last], [_ms(part.asking, part) for part in first]),
        (
            [_ms(part.processor, part) for part in last],
            [_ms(part.processor, part) for part in first],
        ),
        ([part.kept / part.steps for part in last], [part.kept / part.steps for part in first]),
    ]
    return tuple(ratios(*column).text(2) for column in columns)


def _so_far(mark: Mark) -> float:
    return mark.kept / mark.steps


def _ms(seconds: float, part: Mark) -> float:
    return 1000 * seconds / part.steps
