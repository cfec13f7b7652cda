"""Keeping what was tried against failures, and looking up what worked (RE-08)."""

from dataclasses import replace
from typing import Final, NamedTuple

from langgraph.store.base import BaseStore
from pydantic import TypeAdapter

from daruma.state.digest import digest
from daruma.state.experience import Experience
from daruma.state.recovery import RecoveryAction
from daruma.state.settings import Settings
from daruma.tools.evolution.kept import Namespace, all_in, plain, valid
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.recovery_pattern import (
    Attempts,
    RecoveryPattern,
    attempts_in,
    known_actions,
    surest,
)

KEPT: Final = 64
"""Tasks whose attempts against one failure are kept, the newest."""
_MOST: Final = 1000
_ROUNDS: Final = 10
"""How often a summary is made again because others have added to what it is made of."""

_ATTEMPTS: TypeAdapter[Attempts] = TypeAdapter(Attempts)
PATTERN: TypeAdapter[RecoveryPattern] = TypeAdapter(RecoveryPattern)


class Met(NamedTuple):
    """A failure: whose experience it belongs to, the actor whom it happened to, its signature."""

    owner: str
    actor: str
    signature: str


async def learn_recoveries(experience: Experience, store: BaseStore) -> None:
    """Put what a task tried on record, and sum up anew what is known against its failures."""
    for (actor, signature), attempts in attempts_in(experience).items():
        name = name_of(actor, signature)
        place = shelf(experience.owner, "recoveries", name)
        key = digest(experience.task_id)
        await store.aput(place, key, plain(_ATTEMPTS, attempts), index=False)
        known = RecoveryPattern(owner=experience.owner, actor=actor, signature=signature)
        await _summed_up(store, place, name, known)


async def _summed_up(store: BaseStore, place: Namespace, name: str, known: RecoveryPattern) -> None:
    before: list[Attempts] | None = None
    for _ in range(_ROUNDS):
        found = sorted(await all_in(store, _ATTEMPTS, place, _MOST), key=_when)
        if found == before:
            break
        summary = replace(known, actions=known_actions(found), last_at=found[-1].at)
        value = plain(PATTERN, summary)
        await store.aput(shelf(known.owner, "recoveries"), name, value, index=False)
        before = found
    for old in (before or [])[:-KEPT]:
        await store.adelete(place, digest(old.task_id))


def _when(attempts: Attempts) -> tuple[float, str]:
    return attempts.at, attempts.task_id


async def learned_action(
    store: BaseStore, met: Met, settings: Settings, now: float
) -> RecoveryAction | None:
    """Return the action that worked before, if that is sure enough to be done unasked.

    It is one read, whatever else is on record. Raises what the store raises.
    """
    item = await store.aget(shelf(met.owner, "recoveries"), name_of(met.actor, met.signature))
    known = valid(PATTERN, item)
    if known is None or (known.actor, known.signature) != (met.actor, met.signature):
        return None
    found = surest(known.actions, now, min_examples=settings.evolution.min_examples)
    sure = settings.fallback_chain.recovery.execute_above
    return found if found and found.confidence >= sure else None


async def would_recover(
    experience: Experience, store: BaseStore, settings: Settings
) -> dict[str, RecoveryAction]:
    """Return the actions, by signature, that a task would have taken because they were learned.

    To be asked before the task itself is learned from: it is for those who only look on.
    """
    found = {}
    for actor, signature in sorted({(t.actor, t.signature) for t in experience.tried}):
        met = Met(experience.owner, actor, signature)
        if action := await learned_action(store, met, settings, experience.at):
            found[signature] = action
    return found


def name_of(actor: str, signature: str) -> str:
    """Return the key that what is known against a failure is kept under: its id."""
    return digest([actor, signature])
