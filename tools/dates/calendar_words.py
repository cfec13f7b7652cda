"""The day and the minute that the words of a date mean. Pure."""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from daruma.tools.dates.spelling import Token
from daruma.tools.dates.words import EVENING


def later(words: Sequence[Token], now: datetime) -> str:
    """Return the moment after some units of time: a day for what is counted in days or more."""
    number = next(word.value for word in words if word.kind in "NE")
    unit = next(word.unit for word in words if word.kind == "U")
    if unit in ("minute", "hour"):
        after = now.replace(second=0, microsecond=0, tzinfo=None)
        after += timedelta(minutes=number * (60 if unit == "hour" else 1))
        return written(after.replace(tzinfo=now.tzinfo))
    if unit in ("day", "week"):
        return (now.date() + timedelta(days=number * (7 if unit == "week" else 1))).isoformat()
    months = now.year * 12 + now.month - 1 + number * (12 if unit == "year" else 1)
    year, month = months // 12, months % 12 + 1
    return date(year, month, min(now.day, monthrange(year, month)[1])).isoformat()


def day_of(words: Sequence[Token], now: datetime) -> date | None:
    """Return the day that words mean; None for a weekday that the date does not fall on.

    Raises ValueError for a day that there is not.
    """
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
    return found if found and weekday in (None, found.weekday()) else None


def _dated(year: int, month: int, day: int, today: date) -> date | None:
    """Return a day of the calendar; without a year the next one, today included, if there is."""
    if year:
        return date(year, month, day)
    years = range(today.year, today.year + 9)  # a 29th of February is at most 8 years away
    there = [date(y, month, day) for y in years if day <= monthrange(y, month)[1]]
    return next((each for each in there if each >= today), None)


def minutes_of(words: Sequence[Token]) -> int | None:
    """Return the time that words mean, in minutes from midnight; None where it is in doubt."""
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


def written(moment: datetime) -> str:
    """Return a moment in ISO form, to the minute where it is no more exact."""
    exact = moment.second or moment.microsecond
    return moment.isoformat(timespec="auto" if exact else "minutes")
