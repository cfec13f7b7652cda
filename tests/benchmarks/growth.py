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

STRETCHES: Final = ((2, 20), (90, 110), (390, 410), (980, 1000), (1980, 2000))
"""After which step each begins, and after which it ends."""

BOUND: Final = tuple((begin, begin + 200) for begin in range(0, 1000, 200))
"""The same where requests are bound: history is summarised in bursts, which a stretch has to span.
"""

_TITLE: Final = "A step late in a long thread"
_STEPS: Final = 1000
_PEER_STEPS: Final = 410  # it keeps the whole history with each step
_HEAD: Final = (
    "system, characters of an output",
    "steps",
    "ms a step",
    "of a processor",
    "bytes a step",
    "bytes a step so far",
)
_HOW: Final = (
    "One thread, asynchronous caller, Postgres, durability `sync`, journalled tools; medians of "
    "{pairs} threads (lowest-highest). Milliseconds by the clock, and of a processor in the "
    "measured process. Bytes are those of the thread's rows, before Postgres compresses them; a "
    "stretch may hold a whole copy, which is rare."
)
_TOLD: Final = f"{_HOW} `create_agent` on the stock saver is shown to step 410."
_BOUND_TOLD: Final = (
    f"{_HOW} Requests have at most {{budget}} tokens: beyond, older outputs are left out of them, "
    "then older rounds are summarised, in bursts that a stretch holds more or fewer of."
)

_TIMES: Final[tuple[Callable[[Mark], float], ...]] = (
    lambda part: part.clock,
    lambda part: part.processor,
)
"""The seconds of a stretch that are shown, as the columns stand."""

Ways = Mapping[str, Callable[[], dict[int, Mark]]]


def measure(ground: Ground, options: Options) -> list[Table]:
    """Run long threads in turns, and compare stretches of them."""
    steps = options.steps or _STEPS
    ways: dict[str, Callable[[], dict[int, Mark]]] = {
        f"Daruma, {size:,}": partial(_ours, ground, steps, size, options.budget)
        for size in (1000, 20_000)
    }
    if not options.budget:  # it would send all the same
        ways[f"{BARE}, 1,000"] = partial(_peer, ground, min(steps, _PEER_STEPS))
    seen = in_turns(ways, options.pairs, options.seed, warm=False)
    told = (_BOUND_TOLD if options.budget else _TOLD).format(
        pairs=options.pairs, budget=options.budget
    )
    bound = bool(options.budget)
    rows = [row for name, threads in seen.items() for row in _rows(name, threads, bound=bound)]
    samples = {
        f"{name}: {mark}": [thread[mark].processor for thread in threads]
        for name, threads in seen.items()
        for mark in threads[0]
    }
    name = f"growth --budget {options.budget}" if bound else "growth"
    title = "Requests that are bound, late in a long thread" if bound else _TITLE
    return [Table(name, title, _HEAD, rows, told, samples)]


def stretches(steps: int, *, bound: bool = False) -> list[tuple[int, int]]:
    """Return the stretches of a thread of so many steps; a short one is cut in two."""
    within = [each for each in (BOUND if bound else STRETCHES) if each[1] <= steps]
    return within if len(within) > 1 else [(1, steps // 2), (steps // 2, steps)]


def _ours(ground: Ground, steps: int, size: int, budget: int | None) -> dict[int, Mark]:
    task = Task(steps, size=size)
    agent = daruma(task, ground.stores["async"], "external", budget)
    marks = _marks(ground, agent, task, "daruma", bound=bool(budget))
    ground.runner.run(agent.evolution.adrain())
    return marks


def _peer(ground: Ground, steps: int) -> dict[int, Mark]:
    task = Task(steps)
    return _marks(ground, bare(task, ground.stores["async"]), task, "stock")


def _marks(
    ground: Ground, agent: object, task: Task, kind: str, *, bound: bool = False
) -> dict[int, Mark]:
    at = {mark for stretch in stretches(task.steps, bound=bound) for mark in stretch}
    return ground.runner.run(long_thread(agent, task, ground.urls[kind], at))


def _rows(
    name: str, threads: Sequence[Mapping[int, Mark]], *, bound: bool
) -> list[tuple[str, ...]]:
    pairs = stretches(max(threads[0]), bound=bound)
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
        *(Spread.of(_ms(take(part), part) for part in parts).text() for take in _TIMES),
        Spread.of(part.kept / part.steps for part in parts).text(0),
        Spread.of(_so_far(mark) for mark in so_far).text(0),
    )


def _compared(last: Sequence[Mark], first: Sequence[Mark]) -> tuple[str, ...]:
    taken: list[Callable[[Mark], float]] = [*_TIMES, lambda part: part.kept]
    return tuple(
        ratios(*([take(part) / part.steps for part in parts] for parts in (last, first))).text(2)
        for take in taken
    )


def _so_far(mark: Mark) -> float:
    return mark.kept / mark.steps


def _ms(seconds: float, part: Mark) -> float:
    return 1000 * seconds / part.steps
