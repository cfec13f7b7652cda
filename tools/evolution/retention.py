"""Letting go of what was learned long ago: a bounded part at a time, at most once a day."""

from typing import Final

from langgraph.store.base import BaseStore, PutOp

from daruma.tools.evolution.known_recoveries import KnownRecoveries
from daruma.tools.evolution.pitfalls import Pitfalls
from daruma.tools.evolution.places import shelf

DAY: Final = 86_400.0
MOST: Final = 200
"""Pitfalls, and experiences, that one go lets go of."""
_KEY: Final = "last"


async def let_go(pitfalls: Pitfalls, keep_days: int, now: float) -> int:
    """Forget the owner's pitfalls that were not seen for so many days, and what else is as old.

    It looks once a day, and is quick else, but again with the next task where there was more than
    one go takes; ``now`` is Unix time in seconds. Return how many pitfalls, experiences and
    recovery patterns were let go of.
    """
    place = shelf(pitfalls.owner, "upkeep")
    if not await _due(pitfalls.store, place, now):
        return 0
    await pitfalls.store.aput(place, _KEY, {"at": now}, index=False)
    before = now - keep_days * DAY
    gone = [await pitfalls.forget(id_) for id_ in await pitfalls.not_seen_since(before, MOST)]
    experiences = await _experiences(pitfalls, before)
    if MOST in (len(gone), experiences):
        await pitfalls.store.adelete(place, _KEY)
    recoveries = await KnownRecoveries(pitfalls.store, pitfalls.owner).let_go(before)
    return sum(gone) + experiences + recoveries


async def _due(store: BaseStore, place: tuple[str, ...], now: float) -> bool:
    last = await store.aget(place, _KEY)
    at = last.value.get("at") if last else None
    return not isinstance(at, int | float) or abs(now - at) >= DAY


async def _experiences(pitfalls: Pitfalls, before: float) -> int:
    place = shelf(pitfalls.owner, "experiences")
    found = await pitfalls.store.asearch(place, filter={"at": {"$lt": before}}, limit=MOST)
    old = [PutOp(item.namespace, item.key, None) for item in found if item.namespace == place]
    if old:
        await pitfalls.store.abatch(old)
    return len(old)
