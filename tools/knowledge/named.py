"""The names in a text: links, code, and words with capitals. By rule, and pure."""

import re
from collections.abc import Iterator
from typing import Final

MOST: Final = 20
"""Names that are kept of one passage."""

_WIKI: Final = re.compile(r"\[\[([^\[\]|#]{1,80})(?:[|#][^\[\]]*)?\]\]")
_CODE: Final = re.compile(r"`([^`\n]{2,60})`")
_IDENTIFIER: Final = re.compile(
    r"\b(?:[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Za-z]\w*_\w+|[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+)\b"
)
_CAPITALS: Final = re.compile(
    r"(?<![\w.])[A-ZÄÖÜÉ][\w'’-]*(?:[ \t]+(?:of |the |de |von |der )?[A-ZÄÖÜÉ][\w'’-]*){0,3}"
)
_BEGINS: Final = re.compile(r"(?:^|[.!?:]\s+|\n\s*(?:[-*>#|]+|\d+[.)])?\s*)$")
_FILLING: Final = """
    a an and as at but by each every for from he her here his how however i if in is it its many
    more most no not of on one only or our she so some such that the their then there these they
    this those to we what when where which while who why with you your
"""
_NO_NAMES: Final = frozenset(_FILLING.split())


def names_in(text: str) -> list[str]:
    """Return the names in a text, each once, in their order.

    A single word with a capital at the beginning of a sentence is none.

    >>> names_in("The Lease Keeper uses `take_lease` of PostgresSaver in Berlin.")
    ['Lease Keeper', 'take_lease', 'PostgresSaver', 'Berlin']
    """
    places: dict[str, int] = {}
    for place, name in _found(text):
        clean = " ".join(name.split()).strip(" .,:;'’-")
        if len(clean) > 1 and clean.casefold() not in _NO_NAMES:
            places[clean] = min(place, places.get(clean, place))
    return sorted(places, key=lambda name: places[name])[:MOST]


def same(name: str) -> str:
    """Return what two spellings of one name have in common.

    >>> same("The Postgres-Saver") == same("postgres saver")
    True
    """
    words = re.sub(r"[\W_]+", " ", name).casefold().split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("the", "a", "an") else words)


def _found(text: str) -> Iterator[tuple[int, str]]:
    for pattern in (_WIKI, _CODE):
        for match in pattern.finditer(text):
            yield match.start(), match[1].removesuffix("()")
    bare = _CODE.sub(lambda m: " " * len(m[0]), _WIKI.sub(lambda m: " " * len(m[0]), text))
    for match in _IDENTIFIER.finditer(bare):
        yield match.start(), match[0]
    for match in _CAPITALS.finditer(bare):
        yield from _capital(bare, match.start(), match[0])


def _capital(text: str, place: int, name: str) -> Iterator[tuple[int, str]]:
    first, _, rest = name.partition(" ")
    if first.casefold() in _NO_NAMES:  # "The Lease" names a lease
        if rest:
            yield place + len(first) + 1, rest
    elif rest or not _BEGINS.search(text[:place]):
        yield place, name
