"""The words of a text that tell what it is about: what memories are recalled by."""

from functools import cache
from typing import Final

from daruma.tools.word_splitting import terms

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
    return frozenset(word for word in terms(text) if len(word) > 1) - _everywhere()


def is_name(word: str) -> bool:
    """Whether a word is one that nobody says by chance: `billing.py`, `DB_URL`, `v2`."""
    joined = any(each in _JOINS for each in word)
    return joined or (not word.isdigit() and any(each.isdigit() for each in word))


@cache
def _everywhere() -> frozenset[str]:
    return frozenset(terms(_ENGLISH))
