"""What was tried against failures, and what worked (RE-08)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from langgraph.store.base import BaseStore

from daruma.state.failure import RecoveryAction, Strategy
from daruma.state.lessons import Experience, Tried
from daruma.state.record import record
from daruma.state.settings import Settings
from daruma.state.text import digest
from daruma.tools.evolution._records import Shelf, pass_gate, shelf

# --- What earlier tasks say of actions against one failure: counts, and how sure they are. Pure.

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
    met = attrgetter("actor", "signature")
    return {
        of: Attempts(task_id=experience.task_id, at=experience.at, tried=tuple(tried))
        for of, tried in groupby(sorted(kept, key=met), key=met)
    }


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


def choose_surest(
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
        reasoning=pass_gate(best.reasoning),
        tool_name=best.instead or None,
        confidence=confidence(best, now),
        by="learned",
    )


# --- Keeping what was tried against failures, and looking up what worked (RE-08).

KEPT: Final = 64
"""Tasks whose attempts against one failure are kept, the newest."""
MOST: Final = 1000
"""Patterns, and attempts, that are looked through; a failure has a pattern for each actor."""
_ROUNDS: Final = 10
"""How often a summary is made again because others have added to what it is made of."""


class MetFailure(NamedTuple):
    """A failure: whose experience it belongs to, the actor whom it happened to, its signature."""

    owner: str
    actor: str
    signature: str


def _patterns(store: BaseStore, owner: str) -> Shelf[RecoveryPattern]:
    return Shelf(store, RecoveryPattern, shelf(owner, "recoveries"))


def _attempts(store: BaseStore, owner: str, key: str) -> Shelf[Attempts]:
    return Shelf(store, Attempts, shelf(owner, "recoveries", key))


async def learn_recoveries(experience: Experience, store: BaseStore) -> None:
    """Put what a task tried on record, and sum up anew what is known against its failures."""
    for (actor, signature), tried in attempts_in(experience).items():
        key = recovery_key(actor, signature)
        attempts = _attempts(store, experience.owner, key)
        await attempts.put(digest(experience.task_id), tried)
        known = RecoveryPattern(owner=experience.owner, actor=actor, signature=signature)
        before: list[Attempts] = []
        for _ in range(_ROUNDS):
            found = sorted(await attempts.all(MOST), key=lambda each: (each.at, each.task_id))
            if found == before:
                break
            summary = replace(known, actions=known_actions(found), last_at=found[-1].at)
            await _patterns(store, known.owner).put(key, summary)
            before = found
        await attempts.delete(digest(old.task_id) for old in before[:-KEPT])


async def learned_action(
    store: BaseStore, met: MetFailure, settings: Settings, now: float
) -> RecoveryAction | None:
    """Return the action that worked before, if that is sure enough to be done unasked.

    It is one read, whatever else is on record. Raises what the store raises.
    """
    known = await _patterns(store, met.owner).get(recovery_key(met.actor, met.signature))
    if known is None or (known.actor, known.signature) != (met.actor, met.signature):
        return None
    found = choose_surest(known.actions, now, min_examples=settings.evolution.min_examples)
    sure = settings.fallback_chain.recovery.execute_above
    return found if found and found.confidence >= sure else None


async def counterfactual_actions(
    experience: Experience, store: BaseStore, settings: Settings
) -> dict[str, RecoveryAction]:
    """Return the actions, by signature, that a task would have taken because they were learned.

    To be asked before the task itself is learned from: it is for those who only look on.
    """
    found = {}
    for actor, signature in sorted({(t.actor, t.signature) for t in experience.tried}):
        met = MetFailure(experience.owner, actor, signature)
        if action := await learned_action(store, met, settings, experience.at):
            found[signature] = action
    return found


def recovery_key(actor: str, signature: str) -> str:
    """Return the key that what is known against a failure is kept under: its id."""
    return digest([actor, signature])


# --- An owner's recovery patterns, looked at and let go of: by a person, or as they are old.


@dataclass(frozen=True)
class KnownRecoveries:
    """The recovery patterns of an owner; those of others are not there."""

    store: BaseStore
    owner: str

    async def all(self) -> list[RecoveryPattern]:
        """Return the patterns, the one tried last first."""
        # Beneath them lie the attempts, which name no owner.
        found = await _patterns(self.store, self.owner).all(MOST, owner=self.owner)
        return sorted(found, key=lambda each: (-each.last_at, each.signature))

    async def forget(self, id_: str) -> RecoveryPattern | None:
        """Forget a pattern by its id and all attempts behind it; return it, None for none."""
        patterns = _patterns(self.store, self.owner)
        known = await patterns.get(id_)
        if known is not None:
            await _attempts(self.store, self.owner, id_).delete_all(MOST)
            await patterns.delete([id_])
        return known

    async def forget_older(self, than: float) -> int:
        """Forget what was tried last before a time, in Unix seconds; return how many went."""
        old = [each for each in await self.all() if each.last_at < than]
        for each in old:
            await self.forget(recovery_key(each.actor, each.signature))
        return len(old)
