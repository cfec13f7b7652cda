"""Words that mix scripts, so that a letter is taken for another one."""

import re
import unicodedata
from collections.abc import Iterator

_LOOK_LATIN = frozenset(
    "АВЕЅІЈКМНОРСТУХҮԌԚԜаеорсухіјѕһԁԛԝӏү"  # Cyrillic
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχϲϳ"  # Greek
    "ՏՍսօհո"  # Armenian
)
"""Letters that most typefaces draw like a Latin one (from the confusables of Unicode TS 39)."""

_WORD = re.compile(r"[^\W\d_][^\W_]*")


def look_alikes(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield position, letter and word of letters in a Latin word that are not Latin but look so.

    A word wholly in another script is nobody's disguise.
    """
    for found in _WORD.finditer(text):
        word = found[0]
        if word.isascii() or not _LOOK_LATIN & set(word):
            continue
        if any(_is_latin(letter) for letter in word):
            for at, letter in enumerate(word):
                if letter in _LOOK_LATIN:
                    yield found.start() + at, letter, word


def _is_latin(letter: str) -> bool:
    return letter.isalpha() and unicodedata.name(letter, "").startswith("LATIN ")
