"""LangGraph's store on Postgres: what is kept from one thread to the next, and found again.

It is the workspace's and the user's, no thread's: deleting and pruning threads leaves it as it is.
"""

from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, ListNamespacesOp, Op, PutOp, Result, SearchOp

from daruma.graph.storage._database import Connection, Database
from daruma.graph.storage._sealing import Checked, Sealing
from daruma.graph.storage.items._rows import (
    COUNT,
    IndexWords,
    Row,
    beneath_any,
    change,
    fixed_prefix,
    items_of,
    matching,
    namespaces,
    prepared,
    read,
    refuse_unusable,
    wanted,
)
from daruma.graph.storage.items._searching import Meanings, Search, Text
from daruma.graph.storage.items._vectors import Vector
from daruma.graph.sync import on, run
from daruma.tools.text import SearchResult, Way


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
