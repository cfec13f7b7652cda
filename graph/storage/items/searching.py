"""One search: by namespace and filter alone, or ranked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import SearchItem, SearchOp

from daruma.graph.storage.items.filters import exact, fits
from daruma.graph.storage.items.index_words import IndexWords
from daruma.graph.storage.items.rows import item_of, listing, read_scored
from daruma.graph.storage.items.word_search import CANDIDATES, Ranked
from daruma.graph.storage.pool import Connection

_AT_ONCE = 200
"""Rows that are read in one piece, where a filter decides how many are needed."""


@dataclass(frozen=True)
class Listing:
    """Lists the items beneath a prefix, the newest first."""

    index: IndexWords

    async def listed(self, connection: Connection, asked: SearchOp) -> list[SearchItem]:
        """Return one page of the items that fit."""
        signs = self.index.among((), exact(asked.filter))
        statement, values = listing(asked.namespace_prefix, signs)
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
        return found[asked.offset :]

    async def paged(
        self, connection: Connection, ranked: Ranked, asked: SearchOp
    ) -> list[SearchItem]:
        """Return one page of ranked items, those that fit the filter."""
        if not asked.filter:
            page = ranked[asked.offset : asked.offset + asked.limit]
            return await read_scored(connection, self.index.sealing, page)
        items = await read_scored(connection, self.index.sealing, ranked)
        fitting = [item for item in items if fits(item.value, asked.filter)]
        return fitting[asked.offset : asked.offset + asked.limit]


def needed(asked: SearchOp) -> int:
    """Return how many have to be ranked for a page: a filter may drop any number of them."""
    plain = exact(asked.filter)
    whole: Mapping[str, Any] = asked.filter or {}
    return asked.offset + asked.limit if len(plain) == len(whole) else CANDIDATES
