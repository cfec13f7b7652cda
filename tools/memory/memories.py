"""An owner's memories, as far as one role sees them: remembered, searched and forgotten."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from langgraph.store.base import BaseStore, Item, SearchItem

from daruma.state.recalled import Remembered
from daruma.tools.files.threads import in_thread
from daruma.tools.lexical import ranked
from daruma.tools.memory.namespaces import (
    COMMON,
    ROOT,
    all_of,
    label,
    namespace_of,
    owner_in,
    seen_by,
)
from daruma.tools.memory.stored import as_value, from_value

MOST: Final = 1_000
"""Memories of one role that are looked through, where the store itself does not rank them."""


@dataclass(frozen=True)
class Memories:
    """The memories of an owner that a role sees; with ``role`` None those of all its roles."""

    store: BaseStore
    owner: str
    role: str | None = ""

    async def remember(self, memory: Remembered, **stored_by: str) -> None:
        """Keep a memory under its own role. The same one again changes when and who stored it."""
        where = namespace_of(self.owner, memory.role)
        value = as_value(memory, **stored_by) | {"role": memory.role}
        await self.store.aput(where, memory.id, value)

    async def search(self, query: str, limit: int) -> list[Remembered]:
        """Return the memories that fit a query best, best first.

        By the store's own scores; where it gives none, by the words that they share with the query.
        Of equally good ones the order is that of their ids: the same each time.
        """
        items = sorted(await self._items(query), key=lambda item: item.key)
        if not all(item.score is not None for item in items):
            return await in_thread(_by_words, query, _memories(items), limit)
        items.sort(key=lambda item: -(item.score or 0.0))
        return _memories(items)[:limit]

    async def all(self) -> list[Remembered]:
        """Return the memories there are, the newest first; at most ``MOST`` of a role."""
        return sorted(_memories(await self._items()), key=lambda memory: -memory.at)

    async def forget(self, id_: str) -> list[Remembered]:
        """Forget a memory by its id, wherever the role sees it; return what was forgotten."""
        places = await self._places()
        gone = []
        for place in places:
            item = await self.store.aget(place, id_)
            if item is not None:
                await self.store.adelete(place, id_)
                gone += _memories([item])
        return gone

    async def other_owners(self) -> list[str]:
        """Return whose memories there are in the store, but for the owner's own."""
        found = await self.store.alist_namespaces(prefix=ROOT, max_depth=len(ROOT) + 1, limit=MOST)
        owners = dict.fromkeys(owner_in(place) for place in found)
        return [each for each in owners if each != self.owner]

    async def _items(self, query: str | None = None) -> list[SearchItem]:
        found: list[SearchItem] = []
        for place in await self._places():
            items = await self.store.asearch(place, query=query, limit=MOST)
            # A store may take a namespace for the beginning of others: `test` for `tester`.
            found += [item for item in items if item.namespace == place]
        return found

    async def _places(self) -> list[tuple[str, ...]]:
        if self.role is not None:
            return seen_by(self.owner, self.role)
        beneath = all_of(self.owner)
        found = await self.store.alist_namespaces(prefix=beneath, limit=MOST)
        return [place for place in found if place[:-1] == beneath]


def _by_words(query: str, memories: list[Remembered], limit: int) -> list[Remembered]:
    order = ranked(query, [f"{each.section} {each.text}" for each in memories])
    return [memories[index] for index, _ in order[:limit]]


def _memories(items: Iterable[Item]) -> list[Remembered]:
    found = (from_value(item.key, item.value, _role_of(item)) for item in items)
    return [memory for memory in found if memory]


def _role_of(item: Item) -> str:
    """A long role's label is not the role; its value holds it."""
    place, role = item.namespace[-1], item.value.get("role")
    if isinstance(role, str) and label(role or COMMON) == place:
        return role
    return "" if place == COMMON else place
