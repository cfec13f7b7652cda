"""Splitting a date as it was written into words of known kinds; nothing may be left over."""

import re
from collections.abc import Iterator
from datetime import date
from typing import Final, NamedTuple

from daruma.tools.dates.words import EVENING, WORDS, Word, plain


class Token(NamedTuple):
    """One word or number.

    Kinds are those of :class:`~daruma.tools.dates.words.Word`, and C a day of the calendar
    (``year`` is 0 where none was given), T a time in minutes, Y a year, O a day of the month.
    ``exact`` says of an hour that it can not be one of the other half of the day.
    """

    kind: str
    value: int = 0
    unit: str = ""
    exact: bool = False
    year: int = 0
    month: int = 0


LONGEST: Final = 80
"""Characters of a date; what is longer says more than that."""

_NUMBERS: Final = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("ymd", r"(\d{4})\s?[-/.年]\s?(\d{1,2})\s?[-/.月]\s?(\d{1,2})(?:日|号|號)?(?!\d)"),
        ("md", r"()(\d{1,2})月(\d{1,2})(?:日|号|號)"),
        ("dmy", r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4}|\d{2}|)(?![\d:])"),
        ("xxy", r"(\d{1,2})[-/](\d{1,2})[-/](\d{4})(?!\d)"),
        ("T", r"(\d{1,2})(?::|\s?[h点點時]\s?|\.(?=\d\d\s?uhr))(\d{2})(?!\d)(?:\s?(?:分|uhr))?"),
        ("Y", r"(\d{4})(?!\d)"),
        ("O", r"(\d{1,2})(?:st|nd|rd|th|er|\.)(?!\w)"),
        ("N", r"(\d{1,3})(?!\d)"),
    )
)
_SPACE: Final = re.compile(r"[\s,;，、]+|[.!。！](?=\s|$)")
_WORD: Final = re.compile(
    "|".join(rf"{re.escape(word)}(?![a-z])" for word in sorted(WORDS, key=lambda each: -len(each)))
)
_TWO: Final = {
    "tonight": (Token("D", 0), Token("P", EVENING)),
    "this evening": (Token("D", 0), Token("P", EVENING)),
    "this afternoon": (Token("D", 0), Token("P", 12)),
    "今晚": (Token("D", 0), Token("P", EVENING)),
}
_DOUBLE: Final = re.compile("|".join(_TWO))


def tokens(text: str) -> list[Token] | None:
    """Return the words of a date; None if one of them is not known here."""
    text = plain(text).strip()
    if len(text) > LONGEST:
        return None
    found: list[Token] = []
    at = 0
    while at < len(text):
        if space := _SPACE.match(text, at):
            at = space.end()
            continue
        end, read = _next(text, at)
        if not read:
            return None
        found += [_told(each, found) for each in read if each.kind != " "]
        at = end
    return [each for each in found if each.kind != "J"]


def _told(token: Token, before: list[Token]) -> Token:
    """Return an ``am`` behind a number as the half of the day: German has it before a date."""
    late = token.kind == "J" and before and before[-1].kind in ("N", "T")
    return Token("P") if late else token


def _next(text: str, at: int) -> tuple[int, tuple[Token, ...]]:
    if double := _DOUBLE.match(text, at):
        return double.end(), _TWO[double[0]]
    for kind, pattern in _NUMBERS:
        if number := pattern.match(text, at):
            return number.end(), tuple(_number(kind, number))
    letter_before = at > 0 and text[at - 1].isascii() and text[at - 1].isalpha()
    if (word := _WORD.match(text, at)) and not letter_before:
        return word.end(), (_token(WORDS[word[0]]),)
    return at, ()


def _token(word: Word) -> Token:
    return Token(word.kind, word.value, word.unit)


def _number(kind: str, found: re.Match[str]) -> Iterator[Token]:
    """Yield the token of a number; none for a day that is not in the calendar, or in doubt."""
    groups = found.groups()
    first = groups[0]
    if kind in ("ymd", "md"):
        yield from _day(int(first or 0), int(groups[1]), int(groups[2]))
    elif kind == "dmy":
        year = int(groups[2] or 0)
        yield from _day(year + 2000 if 0 < year < 100 else year, int(groups[1]), int(first))
    elif kind == "xxy":
        yield from _either(int(first), int(groups[1]), int(groups[2]))
    elif kind == "T":
        hour, minute = int(first), int(groups[1])
        if hour <= 23 and minute <= 59:
            yield Token("T", hour * 60 + minute, exact=len(first) == 2)
    else:
        yield Token(kind, int(first), exact=len(first) == 2)


def _either(one: int, two: int, year: int) -> Iterator[Token]:
    """Yield a date whose order of day and month is clear: 5/6/2026 is not."""
    if one > 12 or one == two:
        yield from _day(year, two, one)
    elif two > 12:
        yield from _day(year, one, two)


def _day(year: int, month: int, day: int) -> Iterator[Token]:
    try:
        date(year or 2000, month, day)  # 2000 has a 29th of February
    except ValueError:
        return
    yield Token("C", day, year=year, month=month)
