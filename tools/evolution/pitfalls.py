"""An owner's pitfalls in any of LangGraph's stores: observed, read, marked and forgotten."""

from typing import Final

from langgraph.store.base import Op, PutOp

from daruma.tools.evolution.evidence import EVIDENCE, Evidence, evidence_in
from daruma.tools.evolution.pitfall_items import marked, put_of
from daruma.tools.evolution.pitfall_lookup import PitfallLookup, is_id
from daruma.tools.evolution.places import shelf
from daruma.tools.evolution.summing_up import Summary, summed_up
from daruma.tools.evolution.surplus import surplus

MOST_FACTS: Final = 300
"""Tasks of one group of pitfalls that are kept: of more, the newest. Each is compared with each
pitfall of the group, which takes tenths of a second where all goals are different."""
_MOST_READ: Final = 2 * MOST_FACTS
_ROUNDS: Final = 50
"""Times that facts may have changed while they were summed up, which each time another did."""
_MOST_MARKED: Final = 500


class Pitfalls(PitfallLookup):
    """The pitfalls of an owner, to read and to write; only the owner's own are ever written."""

    async def record(self, fact: Evidence, min_confidence: float) -> list[Summary]:
        """Put a fact on record, and sum its group up anew; return what that came to.

        What a task met once it has met, though it was taken up again and went well.
        """
        place, value = self._facts_place(fact.group), EVIDENCE.dump_python(fact, mode="json")
        before = await self.store.aget(place, fact.key)
        met = any(each.seen for each in evidence_in([before] if before else [], place))
        if fact.seen or not met:
            await self.store.aput(place, fact.key, value, index=False)
        return await self.sum_up(fact.group, min_confidence)

    async def sum_up(self, group: str, min_confidence: float) -> list[Summary]:
        """Make the pitfalls of a group what its facts say, whoever adds to these meanwhile."""
        facts, found = await self._facts(group), list[Summary]()
        for _ in range(_ROUNDS):
            found = summed_up(facts, min_confidence)
            if gone := surplus(facts, found, MOST_FACTS):
                place, keys = self._facts_place(group), {each.key for each in gone}
                await self.store.abatch([PutOp(place, key, None) for key in sorted(keys)])
                facts = [each for each in facts if each.key not in keys]
                found = summed_up(facts, min_confidence)
            if changes := await self._changes(group, found):
                await self.store.abatch(changes)
            before, facts = facts, await self._facts(group)
            if facts == before:
                break
        return found

    async def forget(self, id_: str) -> bool:
        """Forget an own pitfall and its evidence; say whether there was one."""
        item = await self.store.aget(self.place, id_) if is_id(id_) else None
        if item is None or not list(self.ours([item])):
            return False
        group = id_.partition("-")[0]
        gone = [(self._facts_place(group), each.key) for each in await self.evidence(id_)]
        await self.store.abatch([PutOp(*name, None) for name in [*gone, (self.place, id_)]])
        return True

    async def evidence(self, id_: str) -> list[Evidence]:
        """Return what tasks say of an own pitfall, the oldest first; nothing for any other id."""
        if not is_id(id_):
            return []
        found = summed_up(await self._facts(id_.partition("-")[0]), 0.0)
        return [fact for each in found if each.pitfall.id == id_ for fact in each.facts]

    async def settle_sharing(self) -> int:
        """Mark all own pitfalls as shared, or as not; return how many were changed."""
        changed, wanted = 0, {"shared": not self.shared}
        while True:
            items = await self.store.asearch(self.place, filter=wanted, limit=_MOST_MARKED)
            ours = list(self.ours(items))
            if not ours:
                return changed
            await self.store.abatch([marked(item, shared=self.shared) for item in ours])
            changed += len(ours)

    async def not_seen_since(self, at: float, most: int) -> list[str]:
        """Return the ids of at most so many own pitfalls that were seen last before ``at``."""
        old = {"last_at": {"$lt": at}}
        found = await self.store.asearch(self.place, filter=old, limit=most)
        return [item.key for item in self.ours(found)]

    def _facts_place(self, group: str) -> tuple[str, ...]:
        return shelf(self.owner, "evidence", group)

    async def _facts(self, group: str) -> list[Evidence]:
        place = self._facts_place(group)
        return evidence_in(await self.store.asearch(place, limit=_MOST_READ), place)

    async def _changes(self, group: str, summaries: list[Summary]) -> list[Op]:
        """Return what makes a group's pitfalls what they are to be; one that is so already stays.

        A failure that any task can meet has hundreds of them, and a task changes one.
        """
        items = await self.store.asearch(self.place, filter={"group": group}, limit=_MOST_READ)
        before = {item.key: item.value for item in self.ours(items)}
        wanted = [put_of(each, shared=self.shared) for each in summaries]
        gone = before.keys() - {each.key for each in wanted}
        changed: list[Op] = [each for each in wanted if each.value != before.get(each.key)]
        return [*changed, *(PutOp(self.place, key, None) for key in sorted(gone))]
