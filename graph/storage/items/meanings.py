"""Finding items by what they mean: their vectors, made when they are put.

Nothing depends on it: where that fails they are made later, and meanwhile words find the items.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.embeddings import Embeddings

from daruma.graph.storage.database import Database
from daruma.graph.storage.items.embedding import AT_ONCE, Embedding, NotEmbedded, Vector
from daruma.graph.storage.items.index_words import IndexWords
from daruma.graph.storage.items.rows import item_of
from daruma.graph.storage.items.texts import text_of
from daruma.graph.storage.items.vectors import (
    EXACT,
    MOST_NUMBERS,
    VANISHED,
    Model,
    NoVectors,
    compared,
    drop_others,
    having,
    lacking,
    make_room,
    nearest,
    store,
)
from daruma.graph.storage.items.word_counts import beneath
from daruma.graph.storage.items.word_search import Ranked
from daruma.graph.storage.pool import Connection
from daruma.state.errors import DamagedState
from daruma.tools.text.search import WORDS_ONLY

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
        look = compared if compare else nearest
        try:
            async with connection.transaction():
                return await look(
                    connection, self.index, prefix, vector, self._ready, wanted=wanted, most=most
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
