"""How sure a pitfall is: the tasks that it was seen in, those that it was not, time. Pure."""

from typing import Final

from daruma.state.pitfall import Level, Pitfall

HALF_LIFE: Final = 90 * 86_400.0
"""Seconds after which a pitfall that was not seen again is half as sure: a quarter of a year, in
which code and tools change. Our own choice."""


def confidence(hits: int, against: int, alike: float = 1.0, age: float = 0.0) -> float:
    """Return how sure it is that tasks of a kind meet a pitfall, from 0 to 1.

    ``(hits + 0.5) / (hits + against + 1.5) * alike * 0.5 ** (age / 90 days)``: the share of tasks
    that it was seen in, as if there had been one and a half more, half a one of them a hit. So one
    task alone makes 0.6, three 0.78, and one beside one that went well 0.43. ``against`` are the
    tasks that went well without being told of it, and those that were told and fell to something
    else: a pitfall that leads astray is soon not told any more. Of what went well only the sampled
    part is known, so it says less of how often than of whether it comes again. ``alike`` is how
    alike their goals are, from 0 to 1; ``age`` are the seconds since it was seen last.
    """
    share = (hits + 0.5) / (hits + against + 1.5)
    return aged(share * alike, age)


def aged(sure: float, age: float) -> float:
    """Return a confidence so many seconds later."""
    return float(sure * 0.5 ** (max(age, 0.0) / HALF_LIFE))


def confidence_at(pitfall: Pitfall, now: float) -> float:
    """Return how sure a pitfall is at ``now``, Unix time in seconds."""
    return aged(pitfall.confidence, now - pitfall.last_at)


def level_of(sure: float, least: float, *, grave: bool) -> Level:
    """Return a pitfall's level. ``grave`` is one that a task fell to, or a person objected to."""
    if sure < least:
        return "low"
    return "high" if grave else "medium"
