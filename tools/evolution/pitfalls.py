"""An owner's pitfalls in any of LangGraph's stores: observed, found by goal, read and forgotten."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langgraph.store.base import BaseStore, Item, Op, PutOp, Result, SearchItem, SearchOp

from daruma.state.experience import Experience, Setback
from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.alike_pitfalls import as_of, most_alike
from daruma.tools.evolution.evidence import EVIDENCE, Evidence, evidence_in, seen_in
from daruma.tools.evolution.likeness import likeness_to_any
from daruma.tools.evolution.pitfall_items import Kept, kept_in, marked, put_of
from daruma.tools.evolution.places import ROOT, shelf
from daruma.tools.evolution.summing_up import Summary, summed_up
from daruma.tools.files.threads import in_thread
from daruma.tools.finding import READ, Finding

MOST_FACTS: Final = 1000
"""Tasks of one group of pitfalls that are counted: of more, those kept last."""
CANDIDATES: Final = 32
"""Pitfalls that a store which ranks by words is asked for, to choose the most alike goals from."""
_ROUNDS: Final = 50
"""Times that facts may have changed while they were summed up, which each time another did."""
_MOST_MARKED: Final = 500
_LONGEST_QUERY: Final = 1000
_ID: Final = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")


@dataclass(frozen=True)
class Pitfalls:
    """The pitfalls of an owner; with ``shared`` also those of others that share theirs, to read.

    What another owner has, and does not share, is answered like what does not exist.
    """

    store: BaseStore
    owner: str
    shared: bool = False

    async def get(self, id_: str) -> Pitfall | None:
        """Return a pitfall by its id, with the confidence of when it was last seen."""
        if not _ID.fullmatch(id_):
            return None
        item = await self.store.aget(self._place, id_)
        found = kept_in([item] if item else [])
        if not found and self.shared:
            wanted = {"id": id_, "shared": True}
            items = await self.store.asearch(ROOT, filter=wanted, limit=READ)
            found = list(self._readable(items))
        return found[0].pitfall if found else None

    async def all(self, limit: int = 1000) -> list[Pitfall]:
        """Return the owner's own pitfalls, at most ``limit``, the one seen last first."""
        items = await self.store.asearch(self._place, limit=max(limit, READ))
        found = [each.pitfall for each in kept_in(self._ours(items))]
        return sorted(found, key=lambda each: (-each.last_at, each.id))[:limit]

    async def similar(
        self,
        query: str,
        now: float,
        *,
        min_confidence: float,
        limit: int = 3,
        skills: Sequence[str] = (),
    ) -> list[Pitfall]:
        """Return the HIGH pitfalls that fit a goal best, as of ``now``: one call of the store."""
        results = await self.store.abatch(self.similar_ops(query, skills))
        return await in_thread(
            self.similar_of,
            results,
            query,
            now,
            min_confidence=min_confidence,
            limit=limit,
            skills=skills,
        )

    async def near(self, goal: str) -> list[Pitfall]:
        """Return some own pitfalls, of any level, that may be of tasks alike to one with a goal."""
        most = CANDIDATES if isinstance(self.store, Finding) else READ
        query = goal[:_LONGEST_QUERY]
        items = await self.store.asearch(self._place, query=query, limit=most)
        found = [each.pitfall for each in kept_in(self._ours(items))]

        def rank() -> list[Pitfall]:
            order = sorted(found, key=lambda each: (-likeness_to_any(query, each.goals), each.id))
            return order[:CANDIDATES]

        return await in_thread(rank)

    async def not_seen_since(self, at: float, most: int) -> list[str]:
        """Return the ids of at most so many own pitfalls that were seen last before ``at``."""
        old = {"last_at": {"$lt": at}}
        found = await self.store.asearch(self._place, filter=old, limit=most)
        return [item.key for item in self._ours(found)]

    def similar_ops(self, query: str, skills: Sequence[str] = ()) -> list[Op]:
        """Return the operations of :meth:`similar`: they may be part of a larger batch."""
        asked = "\n".join((query[:_LONGEST_QUERY], *skills))
        most = CANDIDATES if isinstance(self.store, Finding) else READ
        own = SearchOp(self._place, {"grave": True}, most, 0, asked)
        others = SearchOp(ROOT, {"grave": True, "shared": True}, most, 0, asked)
        return [own, others] if self.shared else [own]

    def similar_of(
        self,
        results: Sequence[Result],
        query: str,
        now: float,
        *,
        min_confidence: float,
        limit: int = 3,
        skills: Sequence[str] = (),
    ) -> list[Pitfall]:
        """Return the same of what the operations came to, in their order. Pure, and no coroutine.

        Where the store does not rank it takes time for each pitfall: call it in a thread.
        """
        items = [item for found in results if isinstance(found, list) for item in found]
        readable = self._readable(each for each in items if isinstance(each, SearchItem))
        pitfalls = [as_of(each, now, min_confidence) for each in readable]
        return most_alike(query[:_LONGEST_QUERY], pitfalls, skills=skills, limit=limit)

    async def observe(
        self, setback: Setback, experience: Experience, min_confidence: float
    ) -> Pitfall:
        """Put on record that a task met a setback, and return the pitfall that it belongs to.

        It makes no difference how often it is told, in which order tasks come, or who else does the
        same meanwhile. Raises ValueError for an experience of another owner's.
        """
        if experience.owner != self.owner:
            raise ValueError(f"the experience is {experience.owner!r}'s, not {self.owner!r}'s")
        fact = seen_in(setback, experience)
        for each in await self.record(fact, min_confidence):
            if any(other.task == fact.task for other in each.facts):
                return each.pitfall
        raise LookupError(f"what the task {fact.task!r} met was forgotten meanwhile")

    async def record(self, fact: Evidence, min_confidence: float) -> list[Summary]:
        """Put a fact on record, and sum its group up anew; return what that came to."""
        value = EVIDENCE.dump_python(fact, mode="json")
        await self.store.aput(self._facts_place(fact.group), fact.key, value, index=False)
        return await self.sum_up(fact.group, min_confidence)

    async def sum_up(self, group: str, min_confidence: float) -> list[Summary]:
        """Make the pitfalls of a group what its facts say, whoever adds to these meanwhile."""
        facts, found = await self._facts(group), list[Summary]()
        for _ in range(_ROUNDS):
            found = summed_up(facts, min_confidence)
            changes: list[Op] = [put_of(each, shared=self.shared) for each in found]
            ids = {each.pitfall.id for each in found}
            changes += [PutOp(i.namespace, i.key, None) for i in await self._of_group(group, ids)]
            await self.store.abatch(changes)
            before, facts = facts, await self._facts(group)
            if facts == before:
                break
        return found

    async def forget(self, id_: str) -> bool:
        """Forget an own pitfall and its evidence; say whether there was one."""
        item = await self.store.aget(self._place, id_) if _ID.fullmatch(id_) else None
        if item is None or not list(self._ours([item])):
            return False
        group = id_.partition("-")[0]
        gone = [(self._facts_place(group), each.key) for each in await self.evidence(id_)]
        await self.store.abatch([PutOp(*name, None) for name in [*gone, (self._place, id_)]])
        return True

    async def evidence(self, id_: str) -> list[Evidence]:
        """Return what tasks say of an own pitfall, the oldest first; nothing for any other id."""
        if not _ID.fullmatch(id_):
            return []
        found = summed_up(await self._facts(id_.partition("-")[0]), 0.0)
        return [fact for each in found if each.pitfall.id == id_ for fact in each.facts]

    async def settle_sharing(self) -> int:
        """Mark all own pitfalls as shared, or as not; return how many were changed."""
        changed, wanted = 0, {"shared": not self.shared}
        while True:
            items = await self.store.asearch(self._place, filter=wanted, limit=_MOST_MARKED)
            ours = list(self._ours(items))
            if not ours:
                return changed
            await self.store.abatch([marked(item, shared=self.shared) for item in ours])
            changed += len(ours)

    @property
    def _place(self) -> tuple[str, ...]:
        return shelf(self.owner, "pitfalls")

    def _facts_place(self, group: str) -> tuple[str, ...]:
        return shelf(self.owner, "evidence", group)

    async def _facts(self, group: str) -> list[Evidence]:
        place = self._facts_place(group)
        return evidence_in(await self.store.asearch(place, limit=MOST_FACTS), place)

    async def _of_group(self, group: str, but: set[str]) -> list[Item]:
        found = await self.store.asearch(self._place, filter={"group": group}, limit=MOST_FACTS)
        return [item for item in self._ours(found) if item.key not in but]

    def _ours(self, items: Iterable[Item]) -> Iterator[Item]:
        # A store may take a namespace for the beginning of others.
        return (item for item in items if item.namespace == self._place)

    def _readable(self, items: Iterable[SearchItem]) -> Iterator[Kept]:
        for item, kept in ((item, kept_in([item])) for item in items):
            ours = item.namespace == self._place
            if kept and (ours or (self.shared and kept[0].pitfall.shared)):
                yield kept[0]
