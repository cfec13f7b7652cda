"""The words of a text as search knows them: one splitting for index, query and ranking. Pure.

Case and accents do not count, nor does the form of a word (Snowball stems). What is joined, such as
``getUserName``, ``max_steps`` or ``tools/search.py``, is known whole and by its parts; writing
without spaces by pairs of characters.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

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
_EMPTY: Final = frozenset(_FILLING.split())


def terms(text: str) -> list[str]:
    """Return the words of a text, in their order, as often as they stand there.

    >>> terms("Runs getUserName")
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
    found = list(dict.fromkeys(terms(text)))
    empty = _empty_terms()
    return [term for term in found if term not in empty] or found


@cache
def _empty_terms() -> frozenset[str]:
    return frozenset(term for word in _EMPTY for term in terms(word))


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
        yield from _stems(part.lower()[:LONGEST], languages)
        runs = _RUNS.findall(part)
        if len(runs) > 1:
            yield from (_folded(run) for run in runs if len(run) > 1)


def _stems(word: str, languages: tuple[str, ...]) -> dict[str, None]:
    return dict.fromkeys(_folded(_stem(word, language)) for language in languages)


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
