"""The tokens of a text that wants to be JSON: also JSON5's and Python's, comments left out."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

from daruma.tools.repair.outcome import CutOff, Unreadable
from daruma.tools.repair.strings import (
    double_quoted,
    single_quoted,
    triple_quoted,
)

Kind = Literal["mark", "string", "number", "word"]

DIGITS: Final = 400
"""Longest number that is read: more digits than any float has, fewer than Python refuses."""
SKIPPED: Final = re.compile(r"(\s+)|(//[^\n\r]*|\#[^\n\r]*|/\*.*?\*/)", re.DOTALL)
TRIPLE: Final = re.compile(r'"""(?!")(.*?)"""(?!")' + r"|'''(?!')(.*?)'''(?!')", re.DOTALL)
DOUBLE: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
SINGLE: Final = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
CURLY: Final = re.compile('“([^“”"\\\\]*)”')
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
WORD: Final = re.compile(r"[A-Za-z_$][\w$-]*")


class Token(NamedTuple):
    """A mark (one of ``{}[](),:``), a string, a number or a bare word, and where it stands."""

    kind: Kind
    value: Any
    start: int
    end: int
    rungs: tuple[str, ...] = ()


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """Yield the tokens from ``start`` on. Raises :class:`Unreadable` where there is none.

    Lazily, so that a reader who stops early has spent no time on the rest.
    """
    rungs: tuple[str, ...] = ()
    while start < len(text):
        if skipped := SKIPPED.match(text, start):
            rungs = ("comments",) if skipped.group(2) else rungs
            start = skipped.end()
            continue
        token = _token(text, start)
        yield token._replace(rungs=(*rungs, *token.rungs))
        rungs, start = (), token.end


def _token(text: str, start: int) -> Token:
    first = text[start]
    if first in "{}[](),:":
        return Token("mark", first, start, start + 1)
    if first in "\"'“":
        return _string(text, start)
    if number := NUMBER.match(text, start):
        return Token("number", _number(number.group()), start, number.end())
    if word := WORD.match(text, start):
        return Token("word", word.group(), start, word.end())
    raise Unreadable(f"{text[start : start + 20]!r} is not JSON")


def _string(text: str, start: int) -> Token:
    found: re.Match[str] | None
    if text.startswith(('"""', "'''"), start):
        if (found := TRIPLE.match(text, start)) is None:
            raise Unreadable("three quotes in a row can be read in two ways")
        value, rungs = triple_quoted(found.group(1) or found.group(2) or "")
    elif text[start] == '"':
        found = _closed(DOUBLE.match(text, start))
        value, rungs = double_quoted(found.group(1), text)
    elif text[start] == "'":
        found = _closed(SINGLE.match(text, start))
        value, rungs = single_quoted(found.group(1))
    else:
        found = _closed(CURLY.match(text, start))
        value, rungs = found.group(1), ("typographic quotes",)
    return Token("string", value, start, found.end(), rungs)


def _closed(found: re.Match[str] | None) -> re.Match[str]:
    if found is None:
        raise CutOff("the arguments end inside a string")
    return found


def _number(text: str) -> int | float:
    if len(text) > DIGITS:
        raise Unreadable("a number has too many digits")
    number: int | float = json.loads(text)
    if isinstance(number, float) and not math.isfinite(number):
        raise Unreadable(f"{text:.20} is too large a number")
    return number
