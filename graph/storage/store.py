"""LangGraph's store on Postgres: what is kept from one thread to the next, and found again.

It is the workspace's and the user's, no thread's: deleting and pruning threads leaves it as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

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

from daruma.graph.bridge import on, run
from daruma.graph.storage.database import Database
from daruma.graph.storage.items.filters import exact
from daruma.graph.storage.items.index_words import IndexWords
from daruma.graph.storage.items.matching import fixed_prefix, matching
from daruma.graph.storage.items.preparing import prepared, refuse_unusable
from daruma.graph.storage.items.rows import Row, delete, namespaces, read, write
from daruma.graph.storage.items.searching import Listing, needed
from daruma.graph.storage.items.word_search import best_by_words
from daruma.graph.storage.pool import Connection
from daruma.graph.storage.sealing import Checked, Sealing

T = TypeVar("T")


class PostgresStore(BaseStore):
    """A store over a pool of connections, for callers on any thread and on any event loop.

    ``search(query=...)`` finds by words. Without a query the items come newest first. Values are
    JSON. In a sealed database they are sealed; namespaces and keys stay in clear, as threads' names
    do. A time to live is not supported.

    Raises :class:`~daruma.graph.storage.items.values.ValueRefused`,
    :class:`~daruma.graph.storage.items.filters.FilterRefused`,
    :class:`~daruma.state.storage.StorageUnavailable` and
    :class:`~daruma.state.storage.DamagedState`.
    """

    def __init__(self, database: Database, sealing: Sealing | None = None) -> None:
        self.database = database
        self._index = IndexWords(sealing or Checked())
        self._listing = Listing(self._index)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in one transaction: what is read is as it was before the writes."""
        return run(self._batch(list(ops)), loop=self.database.loop)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same on any event loop."""
        return await on(self.database.loop, self._batch(list(ops)))

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        refuse_unusable(ops)
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        rows = await prepared(self._index, [op for op in puts.values() if op.value is not None])
        gone = [name for name, op in puts.items() if op.value is None]

        async def work(connection: Connection) -> list[Result]:
            results = await self._read(connection, ops)
            await self._write(connection, rows, gone)
            return results

        return await self.database.transact(work)

    async def _read(self, connection: Connection, ops: Sequence[Op]) -> list[Result]:
        names = [(op.namespace, op.key) for op in ops if isinstance(op, GetOp)]
        sealing = self._index.sealing
        items = await read(connection, sealing, names) if names else {}
        results: list[Result] = []
        for op in ops:
            if isinstance(op, GetOp):
                results.append(items.get((op.namespace, op.key)))
            elif isinstance(op, SearchOp):
                results.append(await self._search(connection, op))
            elif isinstance(op, ListNamespacesOp):
                found = await namespaces(connection, fixed_prefix(op))
                results.append(matching(found, op))
            else:
                results.append(None)
        return results

    async def _write(
        self, connection: Connection, rows: Sequence[Row], gone: Sequence[tuple[Any, str]]
    ) -> None:
        if rows:
            await write(connection, rows)
        if gone:
            await delete(connection, gone)

    async def _search(self, connection: Connection, asked: SearchOp) -> list[SearchItem]:
        if not asked.query:
            return await self._listing.listed(connection, asked)
        wanted: Mapping[str, Any] = exact(asked.filter)
        ranked = await best_by_words(
            connection,
            self._index,
            asked.namespace_prefix,
            asked.query,
            wanted=wanted,
            most=needed(asked),
        )
        return await self._listing.paged(connection, ranked, asked)
