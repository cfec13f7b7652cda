"""One search: by namespace and filter alone, or ranked by words, by meaning, or by both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langgraph.store.base import SearchItem, SearchOp

from daruma.graph.storage.items.embedding import Vector
from daruma.graph.storage.items.filters import exact, fits
from daruma.graph.storage.items.index_words import IndexWords
from daruma.graph.storage.items.meanings import Meanings
from daruma.graph.storage.items.rows import item_of, listing, read_scored
from daruma.graph.storage.items.word_counts import CANDIDATES
from daruma.graph.storage.items.word_search import BY_INDEX, Ranked, best_by_words
from daruma.graph.storage.pool import Connection
from daruma.tools.text.search import BY_CHANCE, Way, fused

_AT_ONCE: Final = 1000
"""Rows that are read in one piece, where a filter decides how many are needed."""
_WIDE: Final = 50
"""Items of each ranking that are fused, at least."""


@dataclass(frozen=True)
class Search:
    """Searches, with the vectors of the queries; a query without one is looked for by words."""

    index: IndexWords
    meanings: Meanings
    vectors: Mapping[str, Vector | None]
    way: Way = "both"

    async def of(self, connection: Connection, asked: SearchOp) -> list[SearchItem]:
        """Return one page of what is asked for. Within a transaction."""
        if not asked.query:
            return await self._listed(connection, asked)
        ranked = await self._ranked(connection, asked, asked.query)
        if not asked.filter:
            page = ranked[asked.offset : asked.offset + asked.limit]
            return await read_scored(connection, self.index.sealing, page)
        items = await read_scored(connection, self.index.sealing, ranked)
        fitting = [item for item in items if fits(item.value, asked.filter)]
        return fitting[asked.offset : asked.offset + asked.limit]

    async def _listed(self, connection: Connection, asked: SearchOp) -> list[SearchItem]:
        prefix, wanted = asked.namespace_prefix, exact(asked.filter)
        statement, values = listing(prefix)
        if wanted:
            await connection.execute(BY_INDEX)
            statement, values = listing(prefix, self.index.among(prefix, wanted))
        last, found = asked.offset + asked.limit, list[SearchItem]()
        if not asked.filter:
            statement, values = f"{statement} LIMIT %s", [*values, last]
        async with connection.cursor("items") as cursor:
            cursor.itersize = _AT_ONCE
            await cursor.execute(statement.encode(), values)
            async for row in cursor:
                item = item_of(row, self.index.sealing)
                if fits(item.value, asked.filter):
                    found.append(item)
                if len(found) >= last:
                    break
        return found[asked.offset : last]

    async def _ranked(self, connection: Connection, asked: SearchOp, query: str) -> Ranked:
        prefix, wanted = asked.namespace_prefix, exact(asked.filter)
        vector, most = self.vectors.get(query), _needed(asked)
        if vector is None:
            return await best_by_words(
                connection, self.index, prefix, query, wanted=wanted, most=most
            )
        most = max(most, _WIDE)
        near = await self.meanings.near(connection, prefix, vector, wanted=wanted, most=most)
        if self.way == "meaning":
            return near
        words = await best_by_words(
            connection, self.index, prefix, query, wanted=wanted, most=most, least=BY_CHANCE
        )
        return fused([[item for item, _ in ranking] for ranking in (words, near)])


def _needed(asked: SearchOp) -> int:
    """Return how many have to be ranked for a page: a filter may drop any number of them."""
    whole = asked.filter or {}
    looked_up = len(exact(whole)) == len(whole)
    return asked.offset + asked.limit if looked_up else CANDIDATES
