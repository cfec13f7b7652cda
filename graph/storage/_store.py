"""LangGraph's store on Postgres: what is kept from one thread to the next, and found again: by what
it means, by words, or by both.

It is the workspace's and the user's, no thread's: deleting and pruning threads leaves it as it is.
"""

import json
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from daruma.graph.storage._database import Connection, Database
from daruma.graph.storage._sealing import Checked, Sealing
from daruma.graph.storage.items._rows import (
    COUNT,
    IndexWords,
    Ranked,
    Row,
    all_of,
    beneath_any,
    between,
    change,
    either,
    exact,
    fits,
    fixed_prefix,
    item_of,
    items_of,
    listing,
    matching,
    namespaces,
    prepared,
    quoted,
    read,
    read_scored,
    refuse_unusable,
    text_of,
    wanted,
)
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
from daruma.graph.sync import on, run
from daruma.state.errors import DamagedState
from daruma.tools.text import BY_CHANCE, WORDS_ONLY, SearchResult, Way, fuse_rankings, rarity

# --- Finding items by words: the index gives candidates, ``ts_rank`` and rarity rank them.
#
# Postgres' own rank of a whole query knows nothing of how rare a word is, which costs an eighth of
# what is found first. So ``ts_rank`` is asked for each word alone, and weighed. No statement reads
# more than a bounded number of items, however many there are (EV-05).

CANDIDATES: Final = 500
"""Items with rare words that are ranked for one query; a word that more items have is common."""
_OF_COMMON: Final = 100
"""Items that are ranked because they have several of the common words."""

_BENEATH: Final = """
SELECT (SELECT reltuples FROM pg_class WHERE oid = 'daruma_items'::regclass) AS all, count(*) AS few
FROM (
    SELECT FROM daruma_items WHERE namespace >= %s AND namespace < %s LIMIT %s
) AS bounded
"""
_COUNT: Final = """
WITH known AS MATERIALIZED (
    SELECT word, share * %(every)s AS having FROM pg_stats, unnest(
        most_common_elems::text::text[], most_common_elem_freqs
    ) AS common (word, share)
    WHERE %(every)s >= %(most)s AND schemaname = current_schema() AND tablename = 'daruma_items'
    AND attname = 'words' AND word = ANY(%(words)s)
)
SELECT CASE WHEN known.having >= %(most)s THEN known.having ELSE (
    SELECT count(*) FROM (
        SELECT FROM daruma_items WHERE words @@ asked.query LIMIT %(most)s
    ) AS bounded
) END AS having
FROM unnest(%(queries)s::text[]::tsquery[], %(words)s::text[]) WITH ORDINALITY
    AS asked (query, word, place) LEFT JOIN known USING (word) ORDER BY place
"""
"""Counted up to a bound; where there are many items, statistics know how many have common words."""

_FOUND: Final = """
WITH candidates AS MATERIALIZED (
    SELECT item.* FROM unnest(%(queries)s::text[]::tsquery[]) AS asked (query), LATERAL (
        SELECT id, words || '' AS words, length FROM daruma_items WHERE words @@ asked.query
        LIMIT %(room)s
    ) AS item LIMIT %(room)s
)
SELECT id, (
    SELECT sum(worth * ts_rank('{1,1,1,1}', words, word))
    FROM unnest(%(words)s::text[]::tsquery[], %(worth)s::float[]) AS asked (word, worth)
) / (1 + ln(1 + length / greatest(1, avg(length) OVER ()))) AS score
FROM candidates ORDER BY score DESC, id DESC LIMIT %(most)s
"""
BY_INDEX: Final = """
SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
    set_config('plan_cache_mode', 'force_custom_plan', true)
"""
"""What the planner knows of a word may let it read the whole table, or compile what takes 1 ms."""

_ONCE: Final = 0.36
"""The score of a word, to its weight, that stands once in an item of mean length."""


async def beneath(connection: Connection, prefix: Sequence[str], bound: int = CANDIDATES) -> int:
    """Return how many items there are beneath a prefix; beyond the bound, all that there are."""
    counted = await connection.execute(_BENEATH, [*between(prefix), bound])
    row = await counted.fetchone() or {"few": 0, "all": 0}
    few = int(row["few"])
    return few if few < bound else max(bound, int(row["all"]))


async def best_by_words(
    connection: Connection,
    index: IndexWords,
    prefix: Sequence[str],
    query: str,
    *,
    wanted: Mapping[str, Any],
    most: int,
    least: float = 0.0,
) -> Ranked:
    """Return at most ``most`` items beneath a prefix that share words with a query.

    ``wanted`` are plain values that they have to have; those are left out whose words weigh less
    than the share ``least`` of the query's. Within a transaction.
    """
    words = index.of_query(query)
    if not words:
        return []
    await connection.execute(BY_INDEX)
    among, every = index.among(prefix, wanted), await beneath(connection, prefix)
    queries = [all_of([among, quoted(word)]) for word in words]
    asked = {"queries": queries, "words": words, "every": every, "most": CANDIDATES}
    counted = await connection.execute(_COUNT, asked)
    having = [int(row["having"]) for row in await counted.fetchall()]
    worth = [rarity(count, max(every, count)) for count in having]
    values = {
        "queries": [all_of([among, each]) for each in _candidates(words, having)],
        "room": max(most, CANDIDATES) + _OF_COMMON,
        "words": [quoted(word) for word in words],
        "worth": worth,
        "most": most,
    }
    found = await (await connection.execute(_FOUND, values)).fetchall()
    floor = least * _ONCE * sum(worth)
    return [(row["id"], row["score"]) for row in found if row["score"] >= floor]


def _candidates(words: Sequence[str], having: Sequence[int]) -> list[str]:
    """Return the queries for what is ranked, in the order in which they are gone through.

    First any of the rare words: of the rarest, those that few enough items have together. Then all
    of the common words, then all but the most common, and so on: to look for any of them would read
    nearly all that there is. No item fits two of them.
    """
    order = sorted(
        (count, quoted(word)) for word, count in zip(words, having, strict=True) if count
    )
    used = list(accumulate(count for count, _ in order))
    rare = [word for (_, word), sum_ in zip(order, used, strict=True) if sum_ <= CANDIDATES]
    common = [word for _, word in order[len(rare) :]]
    rungs = [
        [*common[:most], *(f"!{each}" for each in common[most : most + 1])]
        for most in range(len(common), 0, -1)
    ]
    without = [f"!({either(rare)})"] if rare else []
    return [either(rare)] * bool(rare) + [all_of([*rung, *without]) for rung in rungs]


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
            if meant := [each for each in texts if each.meant]:  # without words there is no vector
                model, items = await self._model(self.embedding), [each.item for each in meant]
                known = await self.database.transact(lambda c: having(c, model, items))
                unknown = [each for each in meant if each.item not in known]
                await self._made(self.embedding, unknown)
            if self.behind:
                self.behind = await self._catch_up(self.embedding) == AT_ONCE
        except (NotEmbedded, NoVectors):
            self.behind = True
        except VANISHED:
            self._lost()

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


# --- The store.


class PostgresStore(BaseStore):
    """A store over a pool of connections, for callers on any thread and on any event loop.

    ``search(query=...)`` finds by words, with ``embeddings`` by meaning too, and fuses both.
    Without a query the items come newest first. Values are JSON. In a sealed database they are
    sealed, and no vectors are kept; namespaces and keys stay in clear, as threads' names do. A time
    to live is not supported.

    Raises :class:`~daruma.graph.storage.items._rows.ValueRefused`,
    :class:`~daruma.graph.storage.items._rows.FilterRefused`,
    :class:`~daruma.state.errors.StorageUnavailable` and
    :class:`~daruma.state.errors.DamagedState`.
    """

    def __init__(
        self,
        database: Database,
        sealing: Sealing | None = None,
        embeddings: Embeddings | None = None,
    ) -> None:
        self.database = database
        self._index = IndexWords(sealing or Checked())
        self.meanings = Meanings(database, self._index, embeddings)

    @property
    def loop(self) -> AbstractEventLoop:
        """The loop that its connections live on."""
        return self.database.loop

    def with_embeddings(self, embeddings: Embeddings | None) -> "PostgresStore":
        """Return a store of the same items that finds by meaning with another model, or with none.

        Items that have no vector of that model yet are found by words, until :meth:`reindex`.
        """
        return PostgresStore(self.database, self._index.sealing, embeddings)

    async def acount(self) -> int:
        """Return how many items there are, on any event loop."""
        (row,) = await self.database.statement(COUNT, {})
        return int(row["count"])

    @property
    def note(self) -> str:
        """Why items are not all found by meaning, in one line; empty if they are."""
        return self.meanings.note

    def reindex(self) -> int:
        """Make the vectors that are lacking, drop other models'; return how many were made.

        It ends early where the model fails; :attr:`note` says so.
        """
        return run(self.meanings.reindex(), loop=self.database.loop)

    async def areindex(self) -> int:
        """Do the same on any event loop."""
        return await on(self.database.loop, self.meanings.reindex())

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in one transaction: what is read is as it was before the writes."""
        return run(self._batch(list(ops)), loop=self.database.loop)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same on any event loop."""
        return await on(self.database.loop, self._batch(list(ops)))

    async def afind(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        way: Way = "both",
        limit: int = 10,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
    ) -> SearchResult:
        """Find by words, by meaning, or by both, and say in a note what could not be done."""
        asked = SearchOp(namespace_prefix, dict(filter or {}), limit, 0, query)
        refuse_unusable([asked])
        return await on(self.database.loop, self._found(asked, way))

    async def _found(self, asked: SearchOp, way: Way) -> SearchResult:
        query = asked.query or ""
        vector = await self.meanings.of_query(query) if way != "words" else None
        search = Search(self._index, self.meanings, {query: vector}, way)
        items = await self.database.transact(lambda c: search.of(c, asked))
        return SearchResult(tuple(items), "" if way == "words" else self.note)

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        refuse_unusable(ops)
        gets = [(op.namespace, op.key) for op in ops if isinstance(op, GetOp)]
        if len(gets) == len(ops):  # in one statement, with no transaction about it
            found = await self.database.statement(*wanted(gets)) if gets else []
            items = items_of(found, self._index.sealing)
            return [items.get(name) for name in gets]
        searches = [op.namespace_prefix for op in ops if isinstance(op, SearchOp)]
        if len(searches) == len(ops) and not await self.database.statement(*beneath_any(searches)):
            return [[] for _ in ops]  # many have never kept a thing there
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        rows = await prepared(self._index, [op for op in puts.values() if op.value is not None])
        gone = [name for name, op in puts.items() if op.value is None]
        queries = {op.query for op in ops if isinstance(op, SearchOp) and op.query}
        vectors = {query: await self.meanings.of_query(query) for query in queries}

        async def work(connection: Connection) -> tuple[list[Result], list[tuple[int, Row]]]:
            results = await self._read(connection, ops, vectors)
            return results, await change(connection, rows, gone)

        results, written = await self.database.transact(work)
        if written:
            await self.meanings.learn([Text(n, row.meant, row.text) for n, row in written])
        return results

    async def _read(
        self, connection: Connection, ops: Sequence[Op], vectors: Mapping[str, Vector | None]
    ) -> list[Result]:
        names = [(op.namespace, op.key) for op in ops if isinstance(op, GetOp)]
        items = await read(connection, self._index.sealing, names) if names else {}
        search = Search(self._index, self.meanings, vectors)
        results: list[Result] = []
        for op in ops:
            if isinstance(op, GetOp):
                results.append(items.get((op.namespace, op.key)))
            elif isinstance(op, SearchOp):
                results.append(await search.of(connection, op))
            elif isinstance(op, ListNamespacesOp):
                found = await namespaces(connection, fixed_prefix(op))
                results.append(matching(found, op))
            else:
                results.append(None)
        return results
