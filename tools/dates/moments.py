"""What day and time a text says, if it says so beyond doubt.

The rules: days count from today where ``now`` is; a weekday is the first one after today; a date
without a year is the next one; 25.11. has its day first, 11/25/2026 is read because only one order
is possible and 5/6/2026 is not read; an hour from 1 to 6 needs a half of the day, or two digits
(03:00). What is not wholly understood is not read at all.
"""

import re
from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final

from daruma.tools.dates.spelling import Token, tokens
from daruma.tools.dates.words import EVENING

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
    return _written(read if read.tzinfo else read.replace(tzinfo=now.tzinfo))


def _written(moment: datetime) -> str:
    exact = moment.second or moment.microsecond
    return moment.isoformat(timespec="auto" if exact else "minutes")


def _said(parts: Mapping[str, Sequence[Token]], now: datetime) -> str | None:
    try:
        if "later" in parts:
            return _later(parts["later"], now)
        day = _day(parts["date"], now) if "date" in parts else None
        minutes = _minutes(parts["time"]) if "time" in parts else None
    except (ValueError, OverflowError):  # there is no such day
        return None
    if ("date" in parts and day is None) or ("time" in parts and minutes is None):
        return None
    clock = time(*divmod(minutes, 60)) if minutes is not None else None
    if day is None:
        return clock.isoformat("minutes") if clock else None
    return _written(datetime.combine(day, clock, now.tzinfo)) if clock else day.isoformat()


def _later(words: Sequence[Token], now: datetime) -> str:
    """Return the moment after some units of time: a day for what is counted in days or more."""
    number = next(word.value for word in words if word.kind in "NE")
    unit = next(word.unit for word in words if word.kind == "U")
    if unit in ("minute", "hour"):
        after = now.replace(second=0, microsecond=0, tzinfo=None)
        after += timedelta(minutes=number * (60 if unit == "hour" else 1))
        return _written(after.replace(tzinfo=now.tzinfo))
    if unit in ("day", "week"):
        return (now.date() + timedelta(days=number * (7 if unit == "week" else 1))).isoformat()
    months = now.year * 12 + now.month - 1 + number * (12 if unit == "year" else 1)
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(now.day, monthrange(year, month)[1])).isoformat()


def _day(words: Sequence[Token], now: datetime) -> date | None:
    by_kind = {word.kind: word for word in words}
    today = now.date()
    if "D" in by_kind:
        return today + timedelta(days=by_kind["D"].value)
    weekday = by_kind["W"].value if "W" in by_kind else None
    if "K" in by_kind and weekday is not None:
        return today + timedelta(days=7 - today.weekday() + weekday)
    if "C" in by_kind:
        calendar = by_kind["C"]
        found = _dated(calendar.year, calendar.month, calendar.value, today)
    elif "M" in by_kind:
        number = by_kind.get("N") or by_kind["O"]
        year = by_kind["Y"].value if "Y" in by_kind else 0
        found = _dated(year, by_kind["M"].value, number.value, today)
    else:
        return today + timedelta(days=((weekday or 0) - today.weekday() - 1) % 7 + 1)
    return found if weekday in (None, found.weekday()) else None


def _dated(year: int, month: int, day: int, today: date) -> date:
    """Return a day of the calendar; without a year the next one, today included."""
    if year:
        return date(year, month, day)
    years = range(today.year, today.year + 9)  # a 29th of February is at most 8 years away
    there = (y for y in years if day <= monthrange(y, month)[1])
    return next(found for y in there if (found := date(y, month, day)) >= today)


def _minutes(words: Sequence[Token]) -> int | None:
    by_kind = {word.kind: word for word in words}
    if "Z" in by_kind:
        return by_kind["Z"].value
    half = by_kind["P"].value if "P" in by_kind else None
    if "T" in by_kind:
        hour, past = divmod(by_kind["T"].value, 60)
        exact = by_kind["T"].exact
    else:
        hours, *more = [word for word in words if word.kind == "N"]
        hour, exact = hours.value, hours.exact and hours.value < 10
        past = more[0].value if more else 0
        past += sum(by_kind[kind].value for kind in "QB" if kind in by_kind)
    found = _hour(hour, half, exact=exact)
    if found is None or not 0 <= found * 60 + past < 24 * 60:
        return None
    return found * 60 + past


def _hour(hour: int, half: int | None, *, exact: bool) -> int | None:
    """Return the hour of the day that is meant, if there is no doubt about its half."""
    if half is None:
        return hour if exact or hour == 0 or 7 <= hour <= 23 else None
    if half == 0:
        return hour % 12 if 1 <= hour <= 12 else None
    if hour > 12:
        return hour if hour <= 23 else None
    if half == EVENING and not 5 <= hour <= 11:
        return None
    return hour % 12 + 12 if hour else None
