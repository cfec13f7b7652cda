"""What there is to show of an owner's pitfalls, as sure as they are by now."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from langgraph.store.base import BaseStore

from daruma.graph.command_line.learned import Learned
from daruma.state.lessons import Pitfall
from daruma.tools.evolution.evidence import Evidence, confidence_at
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.shelf import ROOT
from daruma.tools.memory.memories import owner_in

MOST: Final = 1000
"""Pitfalls that are looked through."""


@dataclass(frozen=True)
class PitfallView:
    """A list of pitfalls; ``others`` says who else has some.

    ``left_out`` counts those that are not of the ``level``; without one, those that are not sure.
    """

    pitfalls: Sequence[Pitfall]
    left_out: int = 0
    others: Sequence[str] = ()
    level: str | None = None


@dataclass(frozen=True)
class Told:
    """One pitfall, and what tasks say of it: the oldest first."""

    pitfall: Pitfall
    evidence: Sequence[Evidence]


async def listing(
    learned: Learned, level: str | None = None, *, everything: bool = False, limit: int = MOST
) -> PitfallView:
    """Return the pitfalls of a level; without one those that are sure, or all."""
    kept = await Pitfalls(learned.store, learned.owner).all(MOST)
    aged = [by_now(each, learned.settings.min_confidence) for each in kept]
    shown = [each for each in aged if _wanted(each, level, everything=everything)]
    others = [] if kept else await other_owners(learned.store, learned.owner)
    return PitfallView(shown[:limit], len(aged) - len(shown), others, level)


async def told_of(learned: Learned, id_: str) -> Told | None:
    """Return an own pitfall; one of somebody else's is as good as none."""
    own = Pitfalls(learned.store, learned.owner)
    found = await own.get(id_)
    if found is None:
        return None
    return Told(by_now(found, learned.settings.min_confidence), await own.evidence(id_))


def by_now(pitfall: Pitfall, least: float) -> Pitfall:
    """Return a pitfall with its confidence of now; one that is no longer sure enough is low."""
    sure = confidence_at(pitfall, time.time())
    return replace(pitfall, confidence=sure, level="low" if sure < least else pitfall.level)


async def other_owners(store: BaseStore, owner: str) -> list[str]:
    """Return who else has pitfalls in the store."""
    found = await store.alist_namespaces(prefix=ROOT, suffix=("pitfalls",), limit=MOST)
    return [each for each in _owners(found) if each != owner]


def _owners(places: Iterable[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(owner_in(place) for place in places if len(place) > len(ROOT)))


def _wanted(pitfall: Pitfall, level: str | None, *, everything: bool) -> bool:
    return pitfall.level == level if level else everything or pitfall.level != "low"
