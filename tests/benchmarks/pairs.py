"""Ways of doing one thing in turns, so that whatever else the machine does hits all of them."""

import gc
import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Spread:
    """The median of what was seen, and between what it lay."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        """Sum values up; there is at least one."""
        seen = sorted(values)
        return cls(statistics.median(seen), seen[0], seen[-1])

    def text(self, digits: int = 1) -> str:
        """It in words: ``5.2 (4.9-6.0)``."""
        low, high = f"{self.low:,.{digits}f}", f"{self.high:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({low}-{high})"


def in_turns(
    ways: Mapping[str, Callable[[], Seen]], rounds: int, seed: int = 7, *, warm: bool = True
) -> dict[str, list[Seen]]:
    """Go each way once a round, in an order drawn anew; a first round that warms up is left out."""
    chance = random.Random(seed)  # noqa: S311 - repeatable, not secret
    seen: dict[str, list[Seen]] = {name: [] for name in ways}
    for name in ways if warm else ():
        ways[name]()
    for _ in range(rounds):
        gc.collect()  # what earlier rounds left behind
        for name in chance.sample(list(ways), len(ways)):
            seen[name].append(ways[name]())
    return seen


def ratios(mine: Sequence[float], other: Sequence[float]) -> Spread:
    """Compare round by round: what hits one round hits both."""
    return Spread.of(each / beside for each, beside in zip(mine, other, strict=True))
