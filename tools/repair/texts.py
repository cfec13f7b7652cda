"""The readings that a text of arguments can have: most have one, a bracket too many gives more."""

import re
from typing import Any, Final

from daruma.tools.repair.closers import one_closer_less
from daruma.tools.repair.commas import read_without_commas
from daruma.tools.repair.equality import same
from daruma.tools.repair.outcome import CutOff, Unreadable
from daruma.tools.repair.reading import Reading, read_value
from daruma.tools.repair.surroundings import bare, checked_prose

ENCODINGS: Final = 2
"""How often an object may be written as a string: once by habit, once more by a server."""
ONLY_QUOTES_ESCAPED: Final = re.compile(r'[^\\"]*(?:\\"[^\\"]*)*')
"""A string without its own quotes; with other escapes it would have two readings."""
MOST_REPEATED: Final = 8
"""How often one and the same object may stand there."""


def readings(text: str, names: frozenset[str], *, encodings: int = ENCODINGS) -> list[Reading]:
    """Return every reading of a text. Raises :class:`Unreadable` or :class:`CutOff` for none.

    ``names`` are the properties, in lower case: none of them may stand in words around.
    """
    text, rungs = bare(text)
    if not text and rungs:
        raise CutOff("the arguments end before their first bracket")
    if text in ("", "null", "None"):
        return [Reading({}, len(text), 0, (*rungs, "empty text"))]
    if text.startswith('{\\"') and ONLY_QUOTES_ESCAPED.fullmatch(text):
        text = f'"{text}"'
    if text[0] in "\"'":
        found = readings(_decoded(text, encodings), names, encodings=encodings - 1)
        rungs = (*rungs, "doubled encoding")
    else:
        found = _objects(text, names)
    return [_with(rungs, each) for each in found]


def _with(rungs: tuple[str, ...], reading: Reading) -> Reading:
    rungs = tuple(dict.fromkeys((*rungs, *reading.rungs)))
    return Reading(reading.value, reading.end, reading.unclosed, rungs)


def _decoded(text: str, encodings: int) -> str:
    reading = read_value(text)
    if text[reading.end :].strip():
        raise Unreadable("a string is followed by more")
    if "single quotes" in reading.rungs and "\\" in text:
        raise Unreadable("a backslash in single quotes can be read in two ways")
    if not encodings or not isinstance(reading.value, str) or not reading.value.strip():
        raise Unreadable("a JSON object is wanted")
    return reading.value


def _objects(text: str, names: frozenset[str]) -> list[Reading]:
    start = 0 if text[0] == "[" else text.find("{")
    if start < 0:
        raise Unreadable("a JSON object is wanted")
    first = _first(text, start)
    rest = text[first.end :].strip()
    if first.unclosed:
        if start or rest:
            raise CutOff("the arguments end inside of something else")
        return [_lone(first)]
    if not start and rest in ("}", "]"):
        return [_with(("extra closing bracket",), _lone(each)) for each in one_closer_less(text)]
    first, end = _repeated(text, first)
    checked_prose(text[:start], text[end:], names)
    around = ("surrounding text",) if start or text[end:].strip() else ()
    return [_with(around, _lone(first))]


def _first(text: str, start: int) -> Reading:
    try:
        return read_value(text, start)
    except CutOff:
        raise
    except Unreadable as error:
        if start:
            raise
        try:
            return read_without_commas(text)
        except Unreadable:
            raise error from None


def _repeated(text: str, first: Reading) -> tuple[Reading, int]:
    """Return the object and where the last repetition of it ends. Raises for another one."""
    end = first.end
    for _ in range(MOST_REPEATED):
        if text[end:].lstrip()[:1] not in ("{", "["):
            break
        again = read_value(text, end)
        if again.unclosed or not same(again.value, first.value):
            raise Unreadable("there are two different objects")
        first, end = _with(("repeated object",), first), again.end
    return first, end


def _lone(reading: Reading) -> Reading:
    """Return an object out of the list of one around it."""
    value: Any = reading.value
    if isinstance(value, list) and len(value) == 1 and not reading.unclosed:
        value = value[0]
        reading = Reading(value, reading.end, 0, ("list around the object", *reading.rungs))
    if not isinstance(value, dict):
        raise Unreadable("a JSON object is wanted")
    return reading
