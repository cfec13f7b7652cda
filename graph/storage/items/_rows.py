"""The statements that write items and read them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
)
from psycopg.rows import DictRow

from daruma.graph.storage._pool import Connection
from daruma.graph.storage._sealing import Sealing, Typed, check_typed_value
from daruma.graph.storage.items._values import (
    Indexed,
    IndexWords,
    ValueRefused,
    between,
    named,
    named_namespace,
    opened_value,
    sealed_value,
    stored_name,
    stored_namespace,
    text_of,
)
from daruma.state.text import digest
from daruma.tools.threads import to_thread

# --- The statements that write items and read them, in one transaction's connection.

_READ: Final = """
SELECT id, namespace, key, kind, value, created_at, updated_at FROM daruma_items {which}
"""
_PUT: Final = """
INSERT INTO daruma_items
    (namespace, key, kind, value, words, length, meant, fields, created_at, updated_at)
SELECT %s, %s, %s, %s, %s::tsvector, %s, %s, %s, at, at FROM clock_timestamp() AS at
ON CONFLICT (namespace, key) DO UPDATE SET
    kind = excluded.kind, value = excluded.value, words = excluded.words,
    length = excluded.length, meant = excluded.meant, fields = excluded.fields,
    updated_at = excluded.updated_at
RETURNING id
"""
_DELETE: Final = "DELETE FROM daruma_items WHERE namespace = %s AND key = %s"
_GET: Final = _READ.format(
    which="""
JOIN unnest(%(namespaces)s::text[], %(keys)s::text[]) AS wanted (ns, name)
ON namespace = ns AND key = name
"""
)
_BENEATH_ANY: Final = """
SELECT true AS found FROM unnest(%(first)s::text[], %(after)s::text[]) AS asked (first, after)
WHERE EXISTS (
    SELECT FROM daruma_items WHERE namespace >= asked.first AND namespace < asked.after
) LIMIT 1
"""
_BY_ID: Final = _READ.format(which="WHERE id = ANY(%s)")
_LISTED: Final = _READ.format(
    which="""
WHERE namespace >= %s AND namespace < %s ORDER BY updated_at DESC, id DESC
"""
)
_LOCK: Final = """
SELECT FROM daruma_items
JOIN unnest(%s::text[], %s::text[]) AS wanted (ns, name) ON namespace = ns AND key = name
ORDER BY namespace, key FOR UPDATE OF daruma_items
"""
_SIGNED: Final = _READ.format(which="WHERE words @@ %s::tsquery ORDER BY updated_at DESC, id DESC")
COUNT: Final = "SELECT count(*) AS count FROM daruma_items"
_NAMESPACES: Final = """
SELECT DISTINCT namespace FROM daruma_items WHERE namespace >= %s AND namespace < %s
"""


@dataclass(frozen=True)
class Row:
    """An item as it is written.

    ``meant`` tells its text from another, for its vector; ``fields`` say which text it is.
    """

    namespace: str
    key: str
    value: Typed
    indexed: Indexed
    text: str
    meant: str
    fields: str


async def write(connection: Connection, rows: Sequence[Row]) -> list[tuple[int, Row]]:
    """Write items over what is there, in one order, and return their numbers."""
    ordered = sorted(rows, key=lambda row: (row.namespace, row.key))
    numbers = list[int]()
    async with connection.cursor() as cursor:
        values = [
            (r.namespace, r.key, *r.value, r.indexed.words, r.indexed.length, r.meant, r.fields)
            for r in ordered
        ]
        await cursor.executemany(_PUT, values, returning=True)
        async for written in cursor.results():
            numbers += [row["id"] for row in await written.fetchall()]
    return list(zip(numbers, ordered, strict=True))


async def change(
    connection: Connection, rows: Sequence[Row], gone: Sequence[tuple[Sequence[str], str]]
) -> list[tuple[int, Row]]:
    """Write items and delete others; return the numbers of those written.

    All that is there is locked first, in one order, so that two who change the same items do not
    wait for each other in a ring.
    """
    if rows and gone:
        names = [*_stored(gone), *((row.namespace, row.key) for row in rows)]
        await connection.execute(_LOCK, [list(each) for each in zip(*names, strict=True)])
    written = await write(connection, rows) if rows else []
    if gone:
        async with connection.cursor() as cursor:
            await cursor.executemany(_DELETE, sorted(_stored(gone)))
    return written


def _stored(names: Sequence[tuple[Sequence[str], str]]) -> list[tuple[str, str]]:
    return [(stored_namespace(namespace), stored_name(key)) for namespace, key in names]


async def read(
    connection: Connection, sealing: Sealing, names: Sequence[tuple[Sequence[str], str]]
) -> dict[tuple[tuple[str, ...], str], Item]:
    """Return the items that there are of those names."""
    found = await connection.execute(*wanted(names))
    return items_of(await found.fetchall(), sealing)


def wanted(names: Sequence[tuple[Sequence[str], str]]) -> tuple[str, dict[str, list[str]]]:
    """Return the statement, with its values, for the items of those names."""
    namespaces, keys = zip(*_stored(names), strict=True)
    return _GET, {"namespaces": [*namespaces], "keys": [*keys]}


def items_of(rows: Iterable[DictRow], sealing: Sealing) -> dict[tuple[tuple[str, ...], str], Item]:
    """Return the items of rows by their names."""
    items = [Item(**_parts(row, sealing)) for row in rows]
    return {(item.namespace, item.key): item for item in items}


def beneath_any(prefixes: Iterable[Sequence[str]]) -> tuple[str, dict[str, list[str]]]:
    """Return the statement, with its values, whose one row says that a prefix has an item."""
    first, after = zip(*map(between, prefixes), strict=True)
    return _BENEATH_ANY, {"first": [*first], "after": [*after]}


async def read_scored(
    connection: Connection, sealing: Sealing, scores: Sequence[tuple[int, float]]
) -> list[SearchItem]:
    """Return items by their numbers, in the order given, with their scores."""
    found = await connection.execute(_BY_ID, [[number for number, _ in scores]])
    rows = {row["id"]: row for row in await found.fetchall()}
    return [item_of(rows[number], sealing, score) for number, score in scores if number in rows]


def listing(prefix: Sequence[str], signs: str = "") -> tuple[str, list[Any]]:
    """Return the statement, with its values, for the items of a prefix, the newest first.

    Those that have ``signs``, the prefix's among them, are looked up in the index.
    """
    return (_SIGNED, [signs]) if signs else (_LISTED, list(between(prefix)))


async def namespaces(connection: Connection, prefix: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the namespaces beneath a prefix that hold items, in their order."""
    found = await connection.execute(_NAMESPACES, list(between(prefix)))
    return sorted(named_namespace(row["namespace"]) for row in await found.fetchall())


def item_of(row: DictRow, sealing: Sealing, score: float | None = None) -> SearchItem:
    """Return the item of a row. Raises :class:`~daruma.state.errors.DamagedState`."""
    return SearchItem(**_parts(row, sealing), score=score)


def _parts(row: DictRow, sealing: Sealing) -> dict[str, Any]:
    namespace, key = named_namespace(row["namespace"]), named(row["key"])
    return {
        "namespace": namespace,
        "key": key,
        "value": opened_value(
            sealing, namespace, key, check_typed_value(row["kind"], row["value"])
        ),
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }


# --- Bringing what is to be put into the form that is written; refusing what can not be.

_LONGEST_NAME: Final = 2000
"""Characters of namespace and key as they are stored; an index of Postgres takes little more."""


def refuse_unusable(ops: Sequence[Op]) -> None:
    """Raise ``ValueRefused``, or LangGraph's errors, for what no store or this one can not do."""
    for op in ops:
        if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
            raise ValueRefused(f"a store knows no operation {type(op).__name__}")
        if isinstance(op, GetOp | PutOp) and not isinstance(op.key, str):
            raise ValueRefused(f"a key is a text, and not {op.key!r:.80}")
        if isinstance(op, PutOp):
            _refuse_put(op)
        if isinstance(op, SearchOp | ListNamespacesOp) and min(op.limit, op.offset) < 0:
            raise ValueRefused("limit and offset must not be negative")


def _refuse_put(op: PutOp) -> None:
    if not op.namespace or not all(isinstance(each, str) and each for each in op.namespace):
        raise InvalidNamespaceError(f"a namespace is made of texts, and has one: {op.namespace!r}")
    if op.ttl is not None:
        raise NotImplementedError("items do not expire here: put them without a ttl")
    if len(stored_namespace(op.namespace)) + len(stored_name(op.key)) > _LONGEST_NAME:
        raise ValueRefused(
            f"the item {op.key[:40]!r}... can not be kept: its namespace and key are longer than "
            f"{_LONGEST_NAME} characters"
        )


async def prepared(index: IndexWords, puts: Sequence[PutOp]) -> list[Row]:
    """Return the rows of items, made in a thread: splitting texts into words takes its time."""
    if not puts:
        return []
    return await to_thread(lambda: [_row(index, op) for op in puts])


def _row(index: IndexWords, op: PutOp) -> Row:
    value: dict[str, Any] = dict(op.value or {})
    sealed = sealed_value(index.sealing, op.namespace, op.key, value)
    text = text_of(value, op.index)
    return Row(
        namespace=stored_namespace(op.namespace),
        key=stored_name(op.key),
        value=sealed,
        indexed=index.of_item(op.namespace, value, text),
        text=text,
        meant="" if index.sealing.hides or not text.strip() else digest(text),
        fields=json.dumps(None if index.sealing.hides else op.index),
    )
