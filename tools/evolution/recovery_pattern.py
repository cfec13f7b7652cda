"""What earlier tasks say of actions against one failure: counts, and how sure they are. Pure."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from daruma.state.experience import Experience, Tried
from daruma.state.record import record
from daruma.state.recovery import RecoveryAction, Strategy
from daruma.tools.evolution.instruction_gate import gated

NEWEST: Final = 8
"""Tasks that an action is judged by: few, so that one that stops working is soon given up."""
FRESH_DAYS: Final = 30.0
"""Days after it last worked that an action counts in full; then by half each 90 days."""
HALF_LIFE_DAYS: Final = 90.0

_DAY: Final = 86_400.0
_NOT_LEARNED: Final = ("escalate", "give-up")
_BROKEN_OFF: Final = ("cancelled", "parked", "blocked")


@record
class Attempts:
    """What one task tried against a failure of one signature. ``at`` is Unix time in seconds."""

    task_id: str
    at: float
    tried: tuple[Tried, ...]
    schema_version: int = 1


@record
class KnownAction:
    """One action, by its newest tasks: in how many it worked and failed, and when it last worked.

    ``reasoning`` is the newest that came with it when it worked.
    """

    strategy: Strategy
    instead: str = ""
    reasoning: str = ""
    worked: int = 0
    failed: int = 0
    last_at: float = 0.0
    schema_version: int = 1


@record
class RecoveryPattern:
    """What is known against failures of a signature that happen to one actor of an owner's.

    ``last_at`` is when something was tried last, in Unix seconds.
    """

    owner: str
    actor: str
    signature: str
    actions: tuple[KnownAction, ...] = ()
    last_at: float = 0.0
    schema_version: int = 1


def attempts_in(experience: Experience) -> dict[tuple[str, str], Attempts]:
    """Return what a task tried, by actor and signature.

    To ask a person or to give up is nothing to learn; nor is what a person agreed to, for that was
    for once; nor what a task that was broken off had no time to see work.
    """
    broken = experience.status in _BROKEN_OFF
    kept = [
        each
        for each in experience.tried
        if each.strategy not in _NOT_LEARNED and not each.asked and (each.worked or not broken)
    ]
    kept.sort(key=_met)
    return {
        met: Attempts(task_id=experience.task_id, at=experience.at, tried=tuple(tried))
        for met, tried in groupby(kept, key=_met)
    }


def _met(tried: Tried) -> tuple[str, str]:
    return tried.actor, tried.signature


class _Seen(NamedTuple):
    at: float
    task_id: str
    worked: bool
    reasoning: str


def known_actions(attempts: Iterable[Attempts]) -> tuple[KnownAction, ...]:
    """Return what attempts say of each action, whatever their order.

    An action is a strategy and the tool to use instead; in a task it worked if it always did.
    """
    seen: dict[tuple[Strategy, str], list[_Seen]] = {}
    for each in attempts:
        for action in sorted({(t.strategy, t.instead) for t in each.tried}):
            tries = [t for t in each.tried if (t.strategy, t.instead) == action]
            worked = all(t.worked for t in tries)
            one = _Seen(each.at, each.task_id, worked, tries[-1].reasoning)
            seen.setdefault(action, []).append(one)
    return tuple(_known(*action, sorted(tasks)[-NEWEST:]) for action, tasks in sorted(seen.items()))


def _known(strategy: Strategy, instead: str, tasks: Sequence[_Seen]) -> KnownAction:
    worked = [each for each in tasks if each.worked]
    return KnownAction(
        strategy=strategy,
        instead=instead,
        reasoning=worked[-1].reasoning if worked else "",
        worked=len(worked),
        failed=len(tasks) - len(worked),
        last_at=worked[-1].at if worked else 0.0,
    )


def confidence(action: KnownAction, now: float) -> float:
    """Return (worked + 1) / (tasks + 2), Laplace's rule of succession, less for what is old.

    Three of three come to 0.8, which is what an action is executed at unless settings say another
    number. Of eight of eight, two failures bring it below.
    """
    days = max(0.0, (now - action.last_at) / _DAY - FRESH_DAYS)
    rate = (action.worked + 1) / (action.worked + action.failed + 2)
    return float(rate * 0.5 ** (days / HALF_LIFE_DAYS))


def surest(
    actions: Iterable[KnownAction], now: float, *, min_examples: int
) -> RecoveryAction | None:
    """Return the surest action that enough tasks have tried; None if none has ever worked.

    It holds no parameters: they belonged to a task of their own. Its reasoning is left out where it
    is not fit to be told to a model as advice.
    """
    tried = [a for a in actions if a.worked and a.worked + a.failed >= min_examples]
    if not tried:
        return None
    best = max(tried, key=lambda a: (confidence(a, now), a.last_at, a.strategy, a.instead))
    return RecoveryAction(
        strategy=best.strategy,
        reasoning=gated(best.reasoning),
        tool_name=best.instead or None,
        confidence=confidence(best, now),
        by="learned",
    )
