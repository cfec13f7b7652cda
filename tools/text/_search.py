"""Words of texts, and finding texts by a query: word splitting, BM25, fused rankings."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, Literal, Protocol, TypeVar, runtime_checkable

from langgraph.store.base import BaseStore, SearchItem

# --- The words of a text as search knows them: one splitting for index, query and ranking. Pure.
#
# Case and accents do not count, nor does the form of a word (Snowball stems). What is joined, such
# as ``getUserName``, ``max_steps`` or ``tools/search.py``, is known whole and by its parts; writing
# without spaces by pairs of characters.

LONGEST: Final = 64
"""Characters of a word that count: what is longer is data, and no two of it begin alike."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, and Korean, whose endings stick to their words."""

_WRITTEN: Final = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]+(?:[./:@\\-]+[^\W{_UNSPACED}]+)*")
_SEAMS: Final = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_RUNS: Final = re.compile(r"\d+|[^\W\d_]+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]")

_TELLING: Final = {
    "german": "der die das und ist nicht ein eine einen mit auf für von zu den dem des im wie wann",
    "french": "le la les un une des et est pas dans pour que qui sur avec du au ce quand comment",
    "spanish": "el la los las un una y es no en para que con del al por como cuando se de",
}
_LETTERS: Final = {"german": "äöüß", "french": "çèêàùœ", "spanish": "ñ¿¡"}
_MARKS: Final = {language: frozenset(words.split()) for language, words in _TELLING.items()}

_FILLING: Final = """
    a about after all an and any are as at be been but by can could did do does for from had has
    have how i if in into is it its me my no not of on or our should so some than that the their
    them then there these they this to up us was we were what when where which who why will with
    would you your der die das und ist ein eine zu den dem des im wie
"""


def split_words(text: str) -> list[str]:
    """Return the words of a text, in their order, as often as they stand there.

    >>> split_words("Runs getUserName")
    ['run', 'getusernam', 'get', 'user', 'name']
    """
    text = unicodedata.normalize("NFKC", text)
    languages = ("english", *_languages(text))
    return [term for word in _WRITTEN.findall(text) for term in _of_a_word(word, languages)]


def query_terms(text: str) -> list[str]:
    """Return the words that a query asks for, each once; those that say nothing if it has others.

    >>> query_terms("Where is the lease of the lease?")
    ['leas']
    """
    found = list(dict.fromkeys(split_words(text)))
    return [term for term in found if term not in _terms_of(_FILLING)] or found


@cache
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(split_words(text))


def _languages(text: str) -> Iterator[str]:
    """Yield the languages, beside English, that a text may be in.

    One too many adds stems that nobody asks for; a text in none of them has its English ones.
    """
    lower = text.lower()
    words = frozenset(re.findall(r"\w+", lower))
    for language, marks in _MARKS.items():
        if words & marks or any(letter in lower for letter in _LETTERS[language]):
            yield language


def _of_a_word(word: str, languages: tuple[str, ...]) -> Iterator[str]:
    if re.match(f"[{_UNSPACED}]", word):
        yield from [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        return
    parts = [part for part in _SEAMS.split(word) if part]
    if len(parts) > 1:
        yield _folded(word)
    for part in parts:
        stems = (_stem(part.lower()[:LONGEST], language) for language in languages)
        yield from dict.fromkeys(map(_folded, stems))
        runs = _RUNS.findall(part)
        if len(runs) > 1:
            yield from (_folded(run) for run in runs if len(run) > 1)


@lru_cache(maxsize=100_000)
def _stem(word: str, language: str) -> str:
    import snowballstemmer  # type: ignore[import-untyped]

    if not word.isalpha():
        return word
    # One for each call: a stemmer keeps the word that it is at, and there are other threads.
    return str(snowballstemmer.stemmer(language).stemWord(word))


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower()[:LONGEST]
    bare = _ACCENTS.sub("", unicodedata.normalize("NFD", word.casefold()))
    return unicodedata.normalize("NFC", bare)[:LONGEST]


# --- The words of a text that tell what it is about: what memories are recalled by.

_ENGLISH: Final = """
a about above after again all also always an and any are as at be because been before but by
can could did do does doing done for from get give go had has have he her here him his how i if
in into is it its just like make may me more most must my need new no not now of on once one
only or other our out over own per please same shall she should so some such than that the
their them then there these they this those through to too under until up us use used using
very want was we were what when where which while who why will with without work would yes you
your
"""
"""English words that stand in texts, and in requests, about anything."""

_JOINS: Final = frozenset("_./:@\\")


def telling_words(text: str) -> frozenset[str]:
    """Return the words of a text that tell of something, in the form that search knows them by."""
    return frozenset(word for word in split_words(text) if len(word) > 1) - _terms_of(_ENGLISH)


def is_name(word: str) -> bool:
    """Whether a word is one that nobody says by chance: `billing.py`, `DB_URL`, `v2`."""
    joined = any(each in _JOINS for each in word)
    return joined or (not word.isdigit() and any(each.isdigit() for each in word))


# --- Which memories fit a goal at all: the floor beneath which none is recalled. Pure.

SHARE: Final = 3
"""One word in so many of the goal's telling ones has to be in a memory ..."""
ENOUGH: Final = 2
"""... but no more than so many."""


def is_related(goal: str, text: str) -> bool:
    """Whether a memory is about something that a goal speaks of: the floor of what is recalled.

    It has to share a third of the goal's telling words, but no more than two; one word in a goal of
    up to three. A name as code writes it (`DB_URL`, `billing.py`) is enough by itself. These are
    our own choice: a wrong memory costs every request of the task, a missing one can be searched.
    """
    wanted = telling_words(goal)
    shared = wanted & telling_words(text)
    needed = min(ENOUGH, math.ceil(sum(not is_name(word) for word in wanted) / SHARE))
    return any(map(is_name, shared)) or len(shared) >= max(needed, 1)


# --- How alike two goals are, by the words that tell what they are about. Pure.

SAME_KIND: Final = 0.5
"""Goals that are at least so alike are of one kind of task, and their failures one pitfall. Half of
the words is our own choice: less joins what only happens in the same repository."""

SAME_TASK: Final = 0.9
"""Goals that are at least so alike, and have the same numbers, ask for the same thing; what speaks
against a pitfall has to be so near. Our own choice: in a series one task says little of the next.
"""

NEEDED: Final = {1: 0.6, 2: 0.5}
"""How alike a goal has to be to those of a pitfall that was seen in so many tasks."""
NEEDED_OF_MORE: Final = 0.4


def likeness(one: str, other: str) -> float:
    """Return how much two goals have in common, from 0 to 1: Dice's coefficient of their words.

    >>> likeness("Fix the rounding in split.py", "fix rounding of split.py!")
    1.0
    """
    ours, theirs = _words(one), _words(other)
    if not ours or not theirs:
        return float(one.split() == other.split())
    return 2 * len(ours & theirs) / (len(ours) + len(theirs))


def likeness_to_any(goal: str, others: Iterable[str]) -> float:
    """Return how alike a goal is to the one that it is most alike to; 0 where there is none."""
    return max((likeness(goal, other) for other in others), default=0.0)


def ask_for_the_same(one: str, other: str) -> bool:
    """Whether two goals are those of one task that comes again."""
    return _numbers(one) == _numbers(other) and likeness(one, other) >= SAME_TASK


def needed_likeness(tasks: int) -> float:
    """Return how alike a goal has to be to be told of a pitfall: the more tasks, the less."""
    return NEEDED.get(tasks, NEEDED_OF_MORE)


@lru_cache(maxsize=20_000)
def _words(goal: str) -> frozenset[str]:
    """Numbers tell tasks apart however short they are: ``fix issue 7``."""
    return telling_words(goal) | _numbers(goal) or frozenset(split_words(goal))


@lru_cache(maxsize=20_000)
def _numbers(goal: str) -> frozenset[str]:
    return frozenset(word for word in split_words(goal) if word.isdigit())


# --- Ranking texts by the words that they share with a query: BM25, for stores that do not rank.

K1: Final = 1.2
"""How soon more of one word adds nothing (Robertson and Zaragoza, 2009: 1.2 to 2)."""
B: Final = 0.75
"""How much the length of a text counts against it (the same: 0.5 to 0.8)."""


def rank_texts(query: str, texts: Sequence[str], least: float = 0.0) -> list[tuple[int, float]]:
    """Return the places of the texts that share a word with a query, with scores, the best first.

    Of two that are equally good the earlier one comes first. Left out are those below the share
    ``least`` of what the query's words weigh.

    >>> [place for place, _ in rank_texts("leases", ["a lock", "the lease of a thread", "lease"])]
    [2, 1]
    """
    wanted = query_terms(query)
    counts = [Counter(split_words(text)) for text in texts]
    lengths = [count.total() for count in counts]
    mean = sum(lengths) / max(1, len(lengths))
    scores, whole = [0.0] * len(texts), 0.0
    for term in wanted:
        having = [place for place, count in enumerate(counts) if term in count]
        worth = rarity(len(having), len(texts))
        whole += worth
        for place in having:
            times, length = counts[place][term], lengths[place] / mean
            scores[place] += worth * times * (K1 + 1) / (times + K1 * (1 - B + B * length))
    found = [(place, score) for place, score in enumerate(scores) if score > least * whole]
    return sorted(found, key=lambda each: -each[1])


def rarity(having: int, among: int) -> float:
    """Return what it is worth to have a word that ``having`` texts ``among`` all have."""
    return math.log(1 + (among - having + 0.5) / (having + 0.5))


# --- Bringing several rankings of the same things together.

T = TypeVar("T", bound=Hashable)

K: Final = 60
"""How little the first places count more than those after them; the value of the paper."""

BY_CHANCE: Final = 1 / 3
"""Share of the weight of a query's words: what has less is left out beside a ranking by meaning.

Places alone do not tell that the best by words has but one word of six, and would put it before the
best by meaning. On the labelled questions of the tests every share from 0.25 to 0.7 does the same.
"""


def fuse_rankings(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """Return the things of all rankings, the best first: reciprocal rank fusion.

    A thing's score is the sum of ``1 / (60 + place)``: places are comparable, scores of different
    rankings are not. After Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms
    Condorcet and individual Rank Learning Methods", SIGIR 2009.

    >>> [thing for thing, _ in fuse_rankings([["a", "b", "c"], ["b", "d"]])]
    ['b', 'a', 'd', 'c']
    """
    scores: dict[T, float] = {}
    for ranking in rankings:
        for place, thing in enumerate(ranking, start=1):
            scores[thing] = scores.get(thing, 0.0) + 1 / (K + place)
    return sorted(scores.items(), key=lambda each: -each[1])


# --- The texts in a value of a store. Pure.


def texts_in(value: Any) -> Iterator[str]:
    """Yield the texts and numbers in a JSON value, without the keys.

    >>> list(texts_in({"a": "red", "b": [1, {"c": "blue"}]}))
    ['red', '1', 'blue']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(each)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


# --- Finding items of a store by a query: as well as the store can, and by words where it can not.

Way = Literal["words", "meaning", "both"]

RANKED_ITEMS: Final = 2000
"""Items, the first that a store gives, that are ranked here where the store does not rank."""
_WIDE: Final = 50
"""Items of each ranking that are brought together."""

WORDS_ONLY: Final = "by words alone: the store has no embedding model"


@dataclass(frozen=True)
class SearchResult:
    """The items found, the best first; ``note`` says what could not be done, in one line."""

    items: tuple[SearchItem, ...] = ()
    note: str = ""


@runtime_checkable
class SearchableStore(Protocol):
    """A store that finds in several ways, and says which of them it went."""

    @property
    def note(self) -> str:
        """Why items are not all found by what they mean; empty if they are."""

    async def afind(
        self,
        namespace_prefix: tuple[str, ...],
        query: str,
        *,
        way: Way = "both",
        limit: int = 10,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
    ) -> SearchResult:
        """Return the items beneath a namespace that a query finds."""


async def search_store(
    store: BaseStore,
    namespace_prefix: tuple[str, ...],
    query: str,
    *,
    way: Way = "both",
    limit: int = 10,
    filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name for it
) -> SearchResult:
    """Find in any store. One that ranks by meaning has that ranking fused with one by words."""
    if isinstance(store, SearchableStore):
        return await store.afind(namespace_prefix, query, way=way, limit=limit, filter=filter)
    conditions = dict(filter) if filter else None
    items = await store.asearch(namespace_prefix, filter=conditions, limit=RANKED_ITEMS)
    by_meaning = []
    if way != "words":
        given = await store.asearch(
            namespace_prefix, query=query, filter=conditions, limit=max(limit, _WIDE)
        )
        by_meaning = [item for item in given if item.score is not None]
    note = "" if way == "words" or by_meaning or not items else WORDS_ONLY
    if not by_meaning:
        return SearchResult(tuple(_by_words(query, items)[:limit]), note)
    by_words = _by_words(query, items, BY_CHANCE) if way == "both" else []
    known = {(item.namespace, item.key): item for item in (*by_words, *by_meaning)}
    names = [[(item.namespace, item.key) for item in each] for each in (by_words, by_meaning)]
    fused = [_scored(known[name], score) for name, score in fuse_rankings(names)[:limit]]
    return SearchResult(tuple(fused), note)


def _by_words(query: str, items: Sequence[SearchItem], least: float = 0.0) -> list[SearchItem]:
    texts = ["\n".join(texts_in(item.value)) for item in items]
    return [_scored(items[place], score) for place, score in rank_texts(query, texts, least)]


def _scored(item: SearchItem, score: float) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)
