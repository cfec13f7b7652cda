"""What stands for an item in the index: its words, its namespaces, its plain values. Pure.

One index of Postgres holds all three, so that words are looked up among those of a namespace. In a
sealed database a word is a digest under the key: who reads the index sees which items share words,
and no word.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from daruma.graph.storage.items.filters import is_plain
from daruma.graph.storage.items.names import prefixes, stored_namespace
from daruma.graph.storage.sealing import Sealing
from daruma.state.text import digest
from daruma.tools.text.search import query_terms, terms

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
        counts = Counter(map(self._word, terms(text)))
        room, kept = _ROOM, []
        for word, times in counts.most_common():
            entry = f"{quoted(word)}:{_positions(times)}"
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
        texts = (f"{key!r}={_same(each)}" for key, each in pairs)
        return [f"?{self.sealing.mark(text, _PLACE)[:16]}" for text in texts]


def _same(value: str | float) -> str:
    return f"text {value!r}" if isinstance(value, str) else f"number {hash(value)}"


def _within(prefix: Sequence[str]) -> str:
    return f"={digest(stored_namespace(prefix))}"


def _positions(times: int) -> str:
    return ",".join(map(str, range(1, min(times, _MOST_TIMES) + 1)))


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
