"""Values, names and filters of items, as Postgres can hold and order them. Pure."""

import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from langgraph.store.base import ListNamespacesOp, MatchCondition, get_text_at_path, tokenize_path

from daruma.graph.storage._sealing import Sealing, Typed
from daruma.state.errors import DamagedState, DarumaError
from daruma.state.text import digest
from daruma.tools.text import query_terms, split_words, texts_in

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
