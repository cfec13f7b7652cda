"""Reading an owner's pitfalls in any of LangGraph's stores: by id, all, and by a goal."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from langgraph.store.base import BaseStore, Item, Op, Result, SearchItem, SearchOp

from daruma.state.pitfall import Pitfall
from daruma.tools.evolution.alike_pitfalls import as_of, most_alike
from daruma.tools.evolution.likeness import likeness_to_any
from daruma.tools.evolution.pitfall_items import Kept, kept_in
from daruma.tools.evolution.places import ROOT, shelf
from daruma.tools.files.threads import in_thread
from daruma.tools.finding import READ, Finding

CANDIDATES: Final = 32
"""Pitfalls that a store which ranks by words is asked for, to choose the most alike goals from."""
_LONGEST_QUERY: Final = 1000
_ID: Final = re.compile(r"[0-9a-f]{12}-[0-9a-f]{8}")


@dataclass(frozen=True)
class PitfallLookup:
    """The pitfalls of an owner; with ``shared`` also those of others that share theirs, to read.

    What another owner has, and does not share, is answered like what does not exist.
    """

    store: BaseStore
    owner: str
    shared: bool = False

    async def get(self, id_: str) -> Pitfall | None:
        """Return a pitfall by its id, with the confidence of when it was last seen."""
        if not is_id(id_):
            return None
        item = await self.store.aget(self.place, id_)
        found = kept_in([item] if item else [])
        if not found and self.shared:
            wanted = {"id": id_, "shared": True}
            items = await self.store.asearch(ROOT, filter=wanted, limit=READ)
            found = list(self._readable(items))
        return found[0].pitfall if found else None

    async def all(self, limit: int = 1000) -> list[Pitfall]:
        """Return the owner's own pitfalls, at most ``limit``, the one seen last first."""
        items = await self.store.asearch(self.place, limit=max(limit, READ))
        found = [each.pitfall for each in kept_in(self.ours(items))]
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
        items = await self.store.asearch(self.place, query=query, limit=most)
        found = [each.pitfall for each in kept_in(self.ours(items))]

        def rank() -> list[Pitfall]:
            order = sorted(found, key=lambda each: (-likeness_to_any(query, each.goals), each.id))
            return order[:CANDIDATES]

        return await in_thread(rank)

    def similar_ops(self, query: str, skills: Sequence[str] = ()) -> list[Op]:
        """Return the operations of :meth:`similar`: they may be part of a larger batch."""
        asked = "\n".join((query[:_LONGEST_QUERY], *skills))
        most = CANDIDATES if isinstance(self.store, Finding) else READ
        own = SearchOp(self.place, {"grave": True}, most, 0, asked)
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

    @property
    def place(self) -> tuple[str, ...]:
        """The namespace of the owner's pitfalls."""
        return shelf(self.owner, "pitfalls")

    def ours(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items that are the owner's pitfalls, of those that a search gave."""
        # A store may take a namespace for the beginning of others.
        return (item for item in items if item.namespace == self.place)

    def _readable(self, items: Iterable[SearchItem]) -> Iterator[Kept]:
        for item, kept in ((item, kept_in([item])) for item in items):
            ours = item.namespace == self.place
            if kept and (ours or (self.shared and kept[0].pitfall.shared)):
                yield kept[0]


def is_id(text: str) -> bool:
    """Whether a text can be the id of a pitfall: the name of its group, and of its first task."""
    return _ID.fullmatch(text) is not None
