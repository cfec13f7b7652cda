"""Finding items by what they mean, by words, or by both."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.embeddings import Embeddings
from langgraph.store.base import SearchItem, SearchOp

from daruma.graph.storage._database import Database
from daruma.graph.storage._pool import Connection
from daruma.graph.storage.items._rows import item_of, listing, read_scored
from daruma.graph.storage.items._values import IndexWords, exact, fits, text_of
from daruma.graph.storage.items._vectors import (
    AT_ONCE,
    EXACT,
    MOST_NUMBERS,
    VANISHED,
    Embedding,
    Model,
    NotEmbedded,
    NoVectors,
    Vector,
    drop_others,
    having,
    lacking,
    make_room,
    nearest,
    store,
)
from daruma.graph.storage.items._words import BY_INDEX, CANDIDATES, Ranked, beneath, best_by_words
from daruma.state.errors import DamagedState
from daruma.tools.text import BY_CHANCE, WORDS_ONLY, Way, fuse_rankings

# --- Finding items by what they mean: their vectors, made when they are put.
#
# Nothing depends on it: where that fails they are made later, and meanwhile words find the items.

SEALED: Final = "by words alone: a sealed database keeps no vectors, as they tell what a text says"
_BEHIND: Final = (
    "some items have no vector of this embedding model yet, and are found by words alone: "
    "`daruma knowledge reindex` makes them"
)


@dataclass(frozen=True)
class Text:
    """The text of an item, by the item's number; ``meant`` tells it from another text."""

    item: int
    meant: str
    text: str


@dataclass
class Meanings:
    """The vectors of a store's items. ``behind`` says that some item lacks one.

    Up to ``exact`` items beneath a prefix are compared one by one.
    """

    database: Database
    index: IndexWords
    given: Embeddings | None = None
    behind: bool = False
    exact: int = EXACT
    embedding: Embedding | None = field(init=False)
    _refused: str = ""
    _ready: Model | None = None

    def __post_init__(self) -> None:
        """Ask for no vectors where none may be kept."""
        sealed = self.index.sealing.hides
        self.embedding = Embedding(self.given) if self.given and not sealed else None
        self._refused = SEALED if sealed and self.given else ""

    @property
    def note(self) -> str:
        """Why items are not all found by what they mean, in one line; empty if they are."""
        if self.embedding is None:
            return self._refused or WORDS_ONLY
        return self._refused or self.embedding.failure or (_BEHIND if self.behind else "")

    async def of_query(self, query: str) -> Vector | None:
        """Return the vector of a query; None where items are found by words alone."""
        if self.embedding is None or self._refused:
            return None
        try:
            vector = await self.embedding.of_query(query)
            await self._model(self.embedding)
        except (NotEmbedded, NoVectors):
            return None
        return vector

    async def near(
        self,
        connection: Connection,
        prefix: Sequence[str],
        vector: Vector,
        *,
        wanted: Mapping[str, Any],
        most: int,
    ) -> Ranked:
        """Return the items beneath a prefix that are nearest to a vector of :meth:`of_query`."""
        if self._ready is None:
            return []
        count = await beneath(connection, prefix, self.exact)
        compare = count < self.exact or self._ready.size > MOST_NUMBERS
        signs = self.index.among((), wanted) or None
        try:
            async with connection.transaction():
                return await nearest(
                    connection, prefix, vector, self._ready, signs=signs, most=most, exact=compare
                )
        except VANISHED:
            self._lost()
            return []

    def _lost(self) -> None:
        """Note that there is no room for vectors any more: whoever needs some makes it anew."""
        self._ready, self.behind = None, True

    async def learn(self, texts: Sequence[Text]) -> None:
        """Make the vectors of items that were put, and of some that still lack one."""
        if self.embedding is None or self._refused:
            return
        try:
            await self._made(self.embedding, await self._unknown(self.embedding, texts))
            if self.behind:
                self.behind = await self._catch_up(self.embedding) == AT_ONCE
        except (NotEmbedded, NoVectors):
            self.behind = True
        except VANISHED:
            self._lost()

    async def _unknown(self, embedding: Embedding, texts: Sequence[Text]) -> list[Text]:
        """Return the texts that have no vector yet; an item without words needs none."""
        meant = [each for each in texts if each.meant]
        if not meant:
            return []
        model, items = await self._model(embedding), [each.item for each in meant]
        known = await self.database.transact(lambda c: having(c, model, items))
        return [each for each in meant if each.item not in known]

    async def reindex(self) -> int:
        """Make all vectors that are lacking, drop those of other models; return how many it made.

        It ends early, with a :attr:`note`, where the model or the database fails.
        """
        if self.embedding is None or self._refused:
            return 0
        made = 0
        try:
            while count := await self._catch_up(self.embedding):
                made += count
            if model := self._ready:
                await self.database.transact(lambda connection: drop_others(connection, model))
            self.behind = False
        except (NotEmbedded, NoVectors):
            self.behind = True
        except VANISHED:
            self._lost()
        return made

    async def _catch_up(self, embedding: Embedding) -> int:
        model = await self._model(embedding)
        after, texts = None, list[Text]()
        while not texts:  # those that can not be read are passed over
            rows = await self.database.transact(lambda c, a=after: lacking(c, model, AT_ONCE, a))  # type: ignore[misc]
            if not rows:
                return 0
            after, texts = rows[-1]["id"], [text for row in rows if (text := self._text(row))]
        await self._made(embedding, texts)
        return len(texts)

    def _text(self, row: Mapping[str, Any]) -> Text | None:
        """Return the text of an item; None for one that is damaged, as who reads it is told."""
        try:
            item = item_of({**row, "created_at": None, "updated_at": None}, self.index.sealing)
        except DamagedState:
            return None
        return Text(row["id"], row["meant"], text_of(item.value, json.loads(row["fields"])))

    async def _made(self, embedding: Embedding, texts: Sequence[Text]) -> None:
        for start in range(0, len(texts), AT_ONCE):
            some = texts[start : start + AT_ONCE]
            vectors = await embedding.of_texts([each.text for each in some])
            model = await self._model(embedding)
            made = [(t.item, t.meant, v) for t, v in zip(some, vectors, strict=True)]
            await self.database.transact(lambda c, m=model, v=made: store(c, m, v))  # type: ignore[misc]

    async def _model(self, embedding: Embedding) -> Model:
        """Return the model, once there is room for its vectors; it is asked for one if need be."""
        if self._ready is None:
            if not embedding.size:
                await embedding.of_query("size")
            model = Model(embedding.name, embedding.size)

            async def prepare(connection: Connection) -> bool:
                await make_room(connection, model)
                return bool(await lacking(connection, model, 1))

            try:
                self.behind = await self.database.transact(prepare) or self.behind
            except NoVectors as error:
                self._refused = str(error)
                raise
            self._ready = model
        return self._ready


# --- One search: by namespace and filter alone, or ranked by words, by meaning, or by both.

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
        # A filter that no index looks up may drop any number of what is ranked.
        looked_up = len(wanted) == len(asked.filter or {})
        most = asked.offset + asked.limit if looked_up else CANDIDATES
        vector = self.vectors.get(query)
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
        return fuse_rankings([[item for item, _ in ranking] for ranking in (words, near)])
