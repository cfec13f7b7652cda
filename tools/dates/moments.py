"""What day and time a text says, if it says so beyond doubt.

The rules: days count from today where ``now`` is; a weekday is the first one after today; a date
without a year is the next one; 25.11. has its day first, 11/25/2026 is read because only one order
is possible and 5/6/2026 is not read; an hour from 1 to 6 needs a half of the day, or two digits
(03:00). What is not wholly understood is not read at all.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Final

from daruma.tools.dates.calendar_words import day_of, later, minutes_of, written
from daruma.tools.dates.spelling import Token, tokens

_ISO_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ tT](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s?([zZ]|[+-]\d{2}:?\d{2})?"
)
_CLOCK: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")

_DATE = r"W?C|D|KW|WK|X?W|WX|W?(?:[NO]MY?|M[NO]Y?)"
_TIME = r"P?[AE]?P?(?:Z|T|QN|NHB|NHN|NH|(?<=[AEP])N|N(?=P))P?"
_FORMS: Final = (
    re.compile(rf"(?P<date>{_DATE})(?P<time>{_TIME})?"),
    re.compile(rf"(?P<time>{_TIME})(?P<date>{_DATE})?"),
    re.compile(r"(?P<later>I[NE]U|[NE]UG)"),
)


def moment_in(text: str, now: datetime) -> str | None:
    """Return the day, the time or both that a text says, in ISO form; None where that is in doubt.

    ``2026-11-25``, ``09:00`` or ``2026-11-25T09:00+01:00``, in the zone of ``now``, which is an
    aware datetime. What is in one of these forms is returned as it is.
    """
    text = text.strip()
    if _ISO_DAY.fullmatch(text) or _ISO_MOMENT.fullmatch(text) or _CLOCK.fullmatch(text):
        return _iso(text, now)
    words = tokens(text)
    kinds = "".join(word.kind for word in words or ())
    for form in _FORMS:
        if words and (found := form.fullmatch(kinds)):
            parts = {
                name: words[found.start(name) : found.end(name)]
                for name, each in found.groupdict().items()
                if each
            }
            return _said(parts, now)
    return None


def has_day(moment: str) -> bool:
    """Whether a moment in ISO form names a day."""
    return _CLOCK.fullmatch(moment) is None


def _iso(text: str, now: datetime) -> str | None:
    moment = _ISO_MOMENT.fullmatch(text)
    try:
        if moment is None:
            return text if _CLOCK.fullmatch(text) else date.fromisoformat(text).isoformat()
        offset = (moment[3] or "").upper()
        read = datetime.fromisoformat(f"{moment[1]}T{moment[2]}{offset}")
    except ValueError:
        return None
    return written(read if read.tzinfo else read.replace(tzinfo=now.tzinfo))


def _said(parts: Mapping[str, Sequence[Token]], now: datetime) -> str | None:
    try:
        if "later" in parts:
            return later(parts["later"], now)
        day = day_of(parts["date"], now) if "date" in parts else None
        minutes = minutes_of(parts["time"]) if "time" in parts else None
    except (ValueError, OverflowError):  # there is no such day
        return None
    if ("date" in parts and day is None) or ("time" in parts and minutes is None):
        return None
    clock = time(*divmod(minutes, 60)) if minutes is not None else None
    if day is None:
        return clock.isoformat("minutes") if clock else None
    return written(datetime.combine(day, clock, now.tzinfo)) if clock else day.isoformat()
