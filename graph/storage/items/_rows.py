"""Items as rows: their names, values and filters, as Postgres can hold and order them; and the
statements that write them and read them.
"""

import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)
from psycopg.rows import DictRow

from daruma.graph.storage._database import Connection
from daruma.graph.storage._sealing import Sealing, Typed, check_typed_value
from daruma.state.errors import DamagedState, DarumaError
from daruma.state.text import digest
from daruma.tools.text import query_terms, split_words, texts_in
from daruma.tools.threads import to_thread

Ranked = list[tuple[int, float]]
"""Items by their number, the best first, each with its score."""

# --- Namespaces and keys as Postgres can hold and order them, whatever characters they have. Pure.

_END: Final = "\x1f"
_AFTER: Final = "\x20"
"""The character after ``_END``: a prefix's namespaces lie between the two."""
_LAST: Final = "\U0010ffff"
"""What is stored is ASCII, and so comes before this."""


def stored_namespace(namespace: Sequence[str]) -> str:
    r"""Return a namespace as one text, so that one within another begins with it.

    >>> stored_namespace(("a", "b"))
    'a\x1fb\x1f'
    """
    return "".join(stored_name(label) + _END for label in namespace)


def named_namespace(stored: str) -> tuple[str, ...]:
    """Return a namespace as it was given."""
    return tuple(named(label) for label in stored.split(_END)[:-1])


def stored_name(name: str) -> str:
    """Return a name in characters that every database can hold."""
    return json.dumps(name)[1:-1]


def named(stored: str) -> str:
    """Return a name as it was given."""
    return str(json.loads(f'"{stored}"'))


def between(prefix: Sequence[str]) -> tuple[str, str]:
    """Return from where, and up to where, the stored namespaces of a prefix lie.

    >>> between(("a",))
    ('a\\x1f', 'a ')
    """
    first = stored_namespace(prefix)
    return first, first[:-1] + _AFTER if first else _LAST


def prefixes(namespace: Sequence[str]) -> list[tuple[str, ...]]:
    """Return all beginnings of a namespace, with itself."""
    return [tuple(namespace[:length]) for length in range(1, len(namespace) + 1)]


# --- Values as they are stored: JSON that reads back as what was given, and nothing else.

_KIND = "json"


class ValueRefused(DarumaError, ValueError):
    """Raised for a value that JSON has no form for, or would read back as another."""


def sealed_value(
    sealing: Sealing, namespace: Sequence[str], key: str, value: Mapping[str, Any]
) -> Typed:
    """Return what is to be stored of a value. Raises :class:`ValueRefused`."""
    try:
        if odd := _odd(value):
            raise ValueError(odd)
        text = json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        told = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueRefused(f"the item {key!r} can not be kept: {told}; give JSON") from None
    return sealing.seal((_KIND, text.encode()), _place(namespace, key))


def opened_value(
    sealing: Sealing, namespace: Sequence[str], key: str, stored: Typed
) -> dict[str, Any]:
    """Return a value as it was given. Raises :class:`~daruma.state.errors.DamagedState`."""
    try:
        kind, text = sealing.open(stored, _place(namespace, key))
        if kind != _KIND:
            raise DamagedState(f"a value stored as {kind!r} is never read")
        value: dict[str, Any] = json.loads(text)
    except (DamagedState, ValueError) as error:
        raise DamagedState(f"the item {key!r} in {'/'.join(namespace)}: {error}") from error
    return value


def _place(namespace: Sequence[str], key: str) -> tuple[str, ...]:
    return stored_namespace(namespace), "item", stored_name(key)


def _odd(value: Any) -> str | None:
    """Say what JSON would silently make something else of."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                return f"its key {key!r} is no text"
            if odd := _odd(each):
                return odd
    elif isinstance(value, list | tuple):
        return next((odd for each in value if (odd := _odd(each))), None)
    return None


# --- The text of a value that it is found by. Pure.

Fields = Sequence[str] | Literal[False] | None
"""Which fields a value is found by: those, none of them, or all texts and numbers in it."""

MOST: Final = 400_000
"""Characters that are read; an item is found by what stands in these."""


def text_of(value: Mapping[str, Any], fields: Fields) -> str:
    """Return the text of a value's fields, one under the other.

    >>> text_of({"a": "red", "b": [1, {"c": "blue"}]}, None)
    'red\\n1\\nblue'
    """
    if fields is False:
        return ""
    if fields is None:
        found = texts_in(value)
    else:
        found = (text for path in fields for text in get_text_at_path(value, tokenize_path(path)))
    return "\n".join(found)[:MOST]


# --- Which values a filter lets through, as LangGraph's stores read one. Pure.

_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_SHORT: Final = 200
OPERATORS: Final = ("$eq", "$ne", *_ORDERS)


class FilterRefused(DarumaError, ValueError):
    """Raised for a filter with an operator that is none."""


def fits(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value fits a filter. Raises :class:`FilterRefused`."""
    return all(_equals(value.get(key), what) for key, what in (wanted or {}).items())


def exact(wanted: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a filter asks to be equal to a plain value, by key: an index can look it up."""
    found = {}
    for key, what in (wanted or {}).items():
        plain = what["$eq"] if isinstance(what, Mapping) and "$eq" in what else what
        if is_plain(plain):
            found[key] = plain
    return found


def is_plain(value: Any) -> bool:
    """Whether a value is a short text or a number; one that is None may as well not be there."""
    return isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _SHORT)


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_holds(name, value, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(
            _equals(value.get(key), other) for key, other in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_equals, value, wanted))
        )
    return bool(value == wanted)


def _holds(name: str, value: Any, wanted: Any) -> bool:
    if name in ("$eq", "$ne"):
        return bool(value == wanted) is (name == "$eq")
    if name not in _ORDERS:
        known = ", ".join(OPERATORS)
        raise FilterRefused(f"a filter knows {known}, and no {name!r}")
    try:  # as numbers, else as texts: what is neither has no order
        value, wanted = float(value), float(wanted)
    except (TypeError, ValueError, OverflowError):
        if not (isinstance(value, str) and isinstance(wanted, str)):
            return False
    return _ORDERS[name](value, wanted)


# --- Which namespaces fit what is asked of them. Pure.


def matching(
    namespaces: Iterable[tuple[str, ...]], asked: ListNamespacesOp
) -> list[tuple[str, ...]]:
    """Return the namespaces that fit, cut to the depth, sorted: one page of them."""
    fitting = [
        namespace
        for namespace in namespaces
        if all(_fits(namespace, condition) for condition in asked.match_conditions or ())
    ]
    cut = sorted({namespace[: asked.max_depth] for namespace in fitting})
    return cut[asked.offset : asked.offset + asked.limit]


def fixed_prefix(asked: ListNamespacesOp) -> tuple[str, ...]:
    """Return the labels that all namespaces asked for begin with."""
    for condition in asked.match_conditions or ():
        if condition.match_type == "prefix":
            labels = list(condition.path)
            return tuple(labels[: labels.index("*")] if "*" in labels else labels)
    return ()


def _fits(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path: Sequence[Any] = condition.path
    if len(namespace) < len(path):
        return False
    if condition.match_type == "suffix":
        namespace, path = namespace[::-1], path[::-1]
    return all(label in ("*", own) for own, label in zip(namespace, path, strict=False))


# --- What stands for an item in the index: its words, its namespaces, its plain values. Pure.
#
# One index of Postgres holds all three, so that words are looked up among those of a namespace. In
# a sealed database a word is a digest under the key: who reads the index sees which items share
# words, and no word.

_ROOM: Final = 700_000
"""Bytes of an item's words; Postgres has room for 1 MB, and breaks off a put beyond it."""
_MOST_TIMES: Final = 32
"""That often a word counts; more of it makes no difference to a rank."""
_LONGEST_QUERY: Final = 32
"""Words of a query that are looked up: of more, the longest, as they are the rare ones."""
_MOST_PLAIN: Final = 1000
_ANYTHING: Final = "?"
"""The sign of an item that has more plain values than are written down."""
_PLACE: Final = ("", "word")


@dataclass(frozen=True)
class Indexed:
    """What is stored of a text: the form of Postgres' ``tsvector``, and how many words it has."""

    words: str
    length: int


@dataclass(frozen=True)
class IndexWords:
    """Writes what the index holds, under one way of sealing."""

    sealing: Sealing

    def of_item(self, namespace: Sequence[str], value: Mapping[str, Any], text: str) -> Indexed:
        """Return what an item is found by."""
        counts = Counter(map(self._word, split_words(text)))
        room, kept = _ROOM, []
        for word, times in counts.most_common():
            positions = ",".join(map(str, range(1, min(times, _MOST_TIMES) + 1)))
            entry = f"{quoted(word)}:{positions}"
            room -= len(entry.encode())
            if room < 0:
                break
            kept.append(entry)
        signs = [*map(_within, prefixes(namespace)), *self._plain(value)]
        return Indexed(" ".join([*map(quoted, signs), *kept]), counts.total())

    def of_query(self, query: str) -> list[str]:
        """Return the words that a query asks for, as the index has them."""
        found = query_terms(query)
        if len(found) > _LONGEST_QUERY:
            longest = sorted(found, key=len, reverse=True)[:_LONGEST_QUERY]
            found = [term for term in found if term in longest]
        return [self._word(term) for term in found]

    def among(self, prefix: Sequence[str], wanted: Mapping[str, Any] | None = None) -> str:
        """Return the condition for items beneath a prefix that have plain values; empty for all."""
        signs = [quoted(_within(prefix))] if prefix else []
        asked = [f"({quoted(each)} | {quoted(_ANYTHING)})" for each in self._plain(wanted or {})]
        return " & ".join([*signs, *asked])

    def _word(self, term: str) -> str:
        return self.sealing.mark(term, _PLACE)[:16] if self.sealing.hides else term

    def _plain(self, value: Mapping[str, Any]) -> list[str]:
        """Return the signs of plain values; equal ones, such as 1 and 1.0, have the same."""
        pairs = [(key, each) for key, each in value.items() if is_plain(each)]
        if len(pairs) > _MOST_PLAIN:
            return [_ANYTHING]
        same = (f"text {v!r}" if isinstance(v, str) else f"number {hash(v)}" for _, v in pairs)
        texts = (f"{key!r}={each}" for (key, _), each in zip(pairs, same, strict=True))
        return [f"?{self.sealing.mark(text, _PLACE)[:16]}" for text in texts]


def _within(prefix: Sequence[str]) -> str:
    return f"={digest(stored_namespace(prefix))}"


def quoted(word: str) -> str:
    """Return a word as Postgres reads it, in a ``tsvector`` and in a ``tsquery``."""
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def either(queries: Iterable[str]) -> str:
    """Return the query for items that have one of several."""
    return " | ".join(f"({query})" for query in queries)


def all_of(queries: Iterable[str]) -> str:
    """Return the query for items that have all of several; empty ones ask for nothing."""
    return " & ".join(f"({query})" for query in queries if query)


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
