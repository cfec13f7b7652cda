"""What comes after a request that failed: ask again, ask the next model, or give up. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from daruma.graph.models.faults import Fault
from daruma.state.settings.sections import Requests

MAX_WAIT = 8.0
"""Seconds; the longest wait of our own. The official clients wait up to 8 s too."""
MAX_RETRY_AFTER = 120.0
"""Seconds; a server that is away for longer is not waited for (the official clients' limit)."""


@dataclass(frozen=True)
class Tried:
    """What failed, at which place of the chain; `asked` is false if no request was made."""

    place: int
    fault: Fault
    asked: bool = True


@dataclass(frozen=True)
class Move:
    """What is done next: at which place of the chain, after how many seconds."""

    then: Literal["again", "next model", "gave up"]
    place: int
    wait: float = 0.0


def next_move(
    tried: Sequence[Tried],
    *,
    chain: int,
    limits: Requests,
    elapsed: float,
    luck: float,
) -> Move:
    """Return what comes after the last of `tried`, none of which brought an answer.

    `chain` is the number of models, `elapsed` the seconds since the call began, `luck` a random
    number from 0 to 1, which spreads the requests of many.
    """
    last = tried[-1]
    given_up = Move("gave up", last.place)
    requests = sum(each.asked for each in tried)
    if last.fault.kind == "final" or requests >= limits.per_call or elapsed >= limits.total_seconds:
        return given_up
    here = sum(each.asked for each in tried if each.place == last.place)
    others = last.place + 1 < chain
    # A model that hangs would else use up the time of those that stand in for it.
    spared = min(limits.seconds, limits.total_seconds / 2)
    if last.fault.kind in {"again", "mend"} and here < limits.per_model:
        wait = _wait(last.fault, here, limits, luck)
        if wait is not None and elapsed + wait < limits.total_seconds - (spared if others else 0):
            return Move("again", last.place, wait)
    return Move("next model", last.place + 1) if others else given_up


def _wait(fault: Fault, here: int, limits: Requests, luck: float) -> float | None:
    """Return how long to wait, None if the server wants more than anybody would wait for."""
    if fault.kind == "mend":
        return 0.0
    if fault.retry_after is None:
        return luck * min(MAX_WAIT, limits.wait_seconds * 2.0 ** (here - 1))
    return fault.retry_after if fault.retry_after <= MAX_RETRY_AFTER else None
