"""Loops: the same calls with the same results, and now the same calls again (RE-02)."""

from collections.abc import Sequence
from typing import NamedTuple

from daruma.state.asked import tools_in
from daruma.state.mode import KEEP_WORKING, Mode
from daruma.state.rounds import Round, attempt, refused, rounds
from daruma.state.step import Step

LONGEST = 4
"""Steps of the longest cycle that is looked for: A B C D A B C D."""


class Loop(NamedTuple):
    """One cycle of rounds, and how many times it was gone through."""

    cycle: tuple[Round, ...]
    times: int

    def __str__(self) -> str:
        names = ", then ".join(" + ".join(tools_in(each.calls)) for each in self.cycle)
        return f"{names}, {self.times} times with the same results"


def threshold_of(mode: Mode) -> int:
    """Return how many equal rounds make a loop: 2, or 3 in the modes that keep working (RE-02)."""
    return 3 if mode in KEEP_WORKING else 2


def repeating(steps: Sequence[Step], asked: Step, *, threshold: int) -> Loop | None:
    """Return the loop that the calls of ``asked`` would go on with; the shortest cycle there is.

    ``steps`` are those of the phase before it. Once calls were not run for a loop, any call of the
    same cycle goes on with it, until something else was done.
    """
    current = attempt(steps)
    if all(step.signature != asked.signature for step in current):
        return None
    past = rounds(current, asked)
    for length in range(1, LONGEST + 1):
        times, cycle = _times(past, length), tuple(past[-length:])
        goes_on = cycle[: None if refused(current) else 1]
        if times >= threshold and asked.signature in {each.calls for each in goes_on}:
            return Loop(cycle, times)
    return None


def _times(past: Sequence[Round], length: int) -> int:
    """Count how often the last ``length`` rounds were gone through in a row; 0 for no cycle."""
    cycle = past[-length:]
    if len(cycle) < length or not all(each.comparable for each in cycle):
        return 0
    times = 1
    while tuple(past[-length * (times + 1) : -length * times]) == tuple(cycle):
        times += 1
    return times
