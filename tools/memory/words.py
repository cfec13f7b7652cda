"""The words of a text that tell what it is about: what memories are found and recalled by."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_WORD = re.compile(r"[^\W_]+(?:[_.:/-]+[^\W_]+)*")
_PARTS = re.compile(r"[_.:/-]+|(?<=[a-z])(?=[A-Z])")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_ENDINGS: Final = ("ing", "ers", "ed", "er", "es", "s", "e")
_ENGLISH: Final = """
a about above after again all also always an and any are as at be because been before but by
can could did do does doing done for from get give go had has have he her here him his how i if
in into is it its just like make may me more most must my need new no not now of on once one
only or other our out over own per please same shall she should so some such than that the
their them then there these they this those through to too under until up us use used using
very want was we were what when where which while who why will with without work would yes you
your
"""
_EVERYWHERE: Final = frozenset(_ENGLISH.split())
"""English words that stand in texts about anything."""


def telling_words(text: str) -> frozenset[str]:
    """Return the words of a text that tell of something, in a form that other spellings share.

    Names as code writes them count whole and in parts, Chinese, Japanese and Korean by pairs of
    characters; accents, case and a few English endings do not count.
    """
    plain = unicodedata.normalize("NFKC", text)
    return frozenset(each for found in _WORD.findall(plain) for each in _forms(found))


def is_name(word: str) -> bool:
    """Whether a word is one that nobody says by chance: `billing.py`, `DB_URL`, `v2`."""
    return any(each in "_.:/-" or each.isdigit() for each in word) and len(word) > 1


def _forms(found: str) -> Iterator[str]:
    parts = [part for part in _PARTS.split(found) if part]
    if len(parts) > 1:
        yield _folded(found)
    for part in parts:
        yield from _pairs(part) if _WIDE.search(part) else _stems(_folded(part))


def _pairs(part: str) -> Iterator[str]:
    for run in _WIDE.findall(part):
        yield from (run[at : at + 2] for at in range(max(len(run) - 1, 1)))
    yield from (each for rest in _WIDE.split(part) if rest for each in _stems(_folded(rest)))


def _stems(word: str) -> Iterator[str]:
    if len(word) < 2 or word in _EVERYWHERE:
        return
    ending = next((e for e in _ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), "")
    yield word.removesuffix(ending) if word.isascii() and word.isalpha() else word


def _folded(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in apart if not unicodedata.combining(each))
