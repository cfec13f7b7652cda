"""An owner's recovery patterns, looked at and let go of: by a person, or as they are old."""

from dataclasses import dataclass
from typing import Final

from langgraph.store.base import BaseStore, PutOp

from daruma.tools.evolution.kept import valid, valid_in
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.recovery_pattern import RecoveryPattern
from daruma.tools.evolution.recovery_patterns import PATTERN, name_of

MOST: Final = 1000
"""Patterns that are looked through; a failure has one for each actor."""


@dataclass(frozen=True)
class KnownRecoveries:
    """The recovery patterns of an owner; those of others are not there."""

    store: BaseStore
    owner: str

    async def all(self) -> list[RecoveryPattern]:
        """Return the patterns, the one tried last first."""
        place = shelf(self.owner, "recoveries")
        # Beneath it lie the attempts, which name no owner.
        items = await self.store.asearch(place, filter={"owner": self.owner}, limit=MOST)
        found = valid_in(PATTERN, items, place)
        return sorted(found, key=lambda each: (-each.last_at, each.signature))

    async def forget(self, id_: str) -> RecoveryPattern | None:
        """Forget a pattern by its id and all attempts behind it; return it, None for none."""
        known = valid(PATTERN, await self.store.aget(shelf(self.owner, "recoveries"), id_))
        if known is None:
            return None
        place = shelf(self.owner, "recoveries", id_)
        items = await self.store.asearch(place, limit=MOST)
        gone = [PutOp(each.namespace, each.key, None) for each in items if each.namespace == place]
        await self.store.abatch([*gone, PutOp(shelf(self.owner, "recoveries"), id_, None)])
        return known

    async def let_go(self, before: float) -> int:
        """Forget what was tried last before a time, in Unix seconds; return how many went."""
        old = [each for each in await self.all() if each.last_at < before]
        for each in old:
            await self.forget(name_of(each.actor, each.signature))
        return len(old)
