"""The day and time that a text names, where it leaves no doubt: English, German, Chinese."""

import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

# --- The words for dates and times: en, de, zh. In another language the model is asked.
#
# Each has the letter of its kind, which the grammar below is written in, and a value.


class Word(NamedTuple):
    """A word's kind, and its value or the name of its unit.

    D days from today, W weekday from Monday as 0, M month, U unit, N number, E the number one of
    a unit (``a``), P the half of the day in hours to add (``EVENING``: a late hour), A at, H
    o'clock, I in, G from now, X next, K next week, Q and B minutes to add to the hour behind or
    before, Z a time in minutes, J German and English "am", and a blank for what means nothing.
    """

    kind: str
    value: int = 0
    unit: str = ""


EVENING: Final = 18
"""The half of the day of words like "at night", of which 2 is no afternoon."""


def plain(text: str) -> str:
    """Return a text without accents, case and other differences in how the same is written."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(each for each in folded if not unicodedata.combining(each))


_NUMBERED: Final = {
    "N": (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "一 二 三 四 五 六 七 八 九 十 十一 十二",
    ),
    "M": (
        "january february march april may june july august september october november december",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "januar februar märz april mai juni juli august september oktober november dezember",
    ),
    "W": (
        "monday tuesday wednesday thursday friday saturday sunday",
        "mon tue wed thu fri sat sun",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "周一 周二 周三 周四 周五 周六 周日",
        "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
    ),
}
_DAYS: Final = (
    "today|heute|今天|今日",
    "tomorrow|morgen|明天|明日",
    "the day after tomorrow|day after tomorrow|übermorgen|后天|後天",
)
_UNITS: Final = {
    "minute": "minute|minutes|min|minuten|分钟|分鐘",
    "hour": "hour|hours|stunde|stunden|小时|小時|個小時|个小时",
    "day": "day|days|tag|tage|tagen|天|日",
    "week": "week|weeks|woche|wochen|周|星期|个星期",
    "month": "month|months|monat|monate|monaten|个月|個月",
    "year": "year|years|jahr|jahre|jahren|年",
}
_OTHERS: Final[dict[Word, str]] = {
    Word("N", 1): "ein|eine|einer|einem",
    Word("N", 2): "两|兩",
    Word("E", 1): "a|an",
    Word("W", 6): "星期天|周天",
    Word("J"): "am",
    Word("P", 0): "a.m.|a.m|morning|in the morning|früh|morgens|vormittags|上午|早上",
    Word("P", 12): "pm|p.m.|p.m|afternoon|in the afternoon|nachmittag|nachmittags|下午",
    Word("P", EVENING): "evening|in the evening|at night|abend|abends|am abend|晚上|夜",
    Word("A"): "at|@|um|gegen",
    Word("H"): "o'clock|uhr|h|点|點|点钟",
    Word("I"): "in",
    Word("G"): "from now|后|後|以后|之后",
    Word("X"): "next|this|coming|nächsten|nächster|nächste|diesen|kommenden",
    Word("K"): "next week|nächste woche|下|下个|下個",
    Word("Q", 30): "half past",
    Word("Q", 15): "quarter past|viertel nach",
    Word("Q", -15): "quarter to|viertel vor",
    Word("Q", -30): "halb",
    Word("B", 30): "半",
    Word("Z", 720): "noon|midday|mittag|mittags|正午|中午",
    Word(" "): "on|the|of|den|der|due|by|bis|und",
}


def _words() -> dict[str, Word]:
    found: dict[str, Word] = {}
    for unit, names in _UNITS.items():
        found |= dict.fromkeys(names.split("|"), Word("U", unit=unit))
    for kind, rows in _NUMBERED.items():
        first = 0 if kind == "W" else 1
        for row in rows:
            found |= {name: Word(kind, n) for n, name in enumerate(row.split(), first)}
    for days, names in enumerate(_DAYS):
        found |= dict.fromkeys(names.split("|"), Word("D", days))
    for word, names in _OTHERS.items():
        found |= dict.fromkeys(names.split("|"), word)
    return {plain(name): word for name, word in found.items() if name}


WORDS: Final = _words()
"""Every word, without its accents."""


# --- Splitting a date as it was written into words of known kinds; nothing may be left over.


class Token(NamedTuple):
    """One word or number.

    Kinds are those of :class:`~daruma.tools.dates.Word`, and C a day of the calendar
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
        ("O", r"(\d{1,2})(?:st|nd|rd|th|\.)(?!\w)"),
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
        for each in read:
            # German has "am" before a date; behind a number it is the half of the day.
            late = each.kind == "J" and found and found[-1].kind in ("N", "T")
            found += [] if each.kind == " " else [Token("P") if late else each]
        at = end
    return [each for each in found if each.kind != "J"]


def _next(text: str, at: int) -> tuple[int, tuple[Token, ...]]:
    if double := _DOUBLE.match(text, at):
        return double.end(), _TWO[double[0]]
    for kind, pattern in _NUMBERS:
        if number := pattern.match(text, at):
            return number.end(), tuple(_number(kind, number))
    letter_before = at > 0 and text[at - 1].isascii() and text[at - 1].isalpha()
    if (word := _WORD.match(text, at)) and not letter_before:
        return word.end(), (Token(*WORDS[word[0]]),)
    return at, ()


def _number(kind: str, found: re.Match[str]) -> Iterator[Token]:
    """Yield the token of a number; none for a day that is not in the calendar, or in doubt."""
    groups = found.groups()
    first = groups[0]
    if kind in ("ymd", "md"):
        yield from _day(int(first or 0), int(groups[1]), int(groups[2]))
    elif kind == "dmy":
        year = int(groups[2] or 0)
        yield from _day(year + 2000 if 0 < year < 100 else year, int(groups[1]), int(first))
    elif kind == "xxy":  # the order of day and month has to be clear: that of 5/6/2026 is not
        one, two, year = map(int, groups)
        if one > 12 or one == two:
            yield from _day(year, two, one)
        elif two > 12:
            yield from _day(year, one, two)
    elif kind == "T":
        hour, minute = int(first), int(groups[1])
        if hour <= 23 and minute <= 59:
            yield Token("T", hour * 60 + minute, exact=len(first) == 2)
    else:
        yield Token(kind, int(first), exact=len(first) == 2)


def _day(year: int, month: int, day: int) -> Iterator[Token]:
    try:
        date(year or 2000, month, day)  # 2000 has a 29th of February
    except ValueError:
        return
    yield Token("C", day, year=year, month=month)


# --- The day and the minute that the words of a date mean. Pure.


def moment_after(words: Sequence[Token], now: datetime) -> str:
    """Return the moment after some units of time: a day for what is counted in days or more."""
    number = next(word.value for word in words if word.kind in "NE")
    unit = next(word.unit for word in words if word.kind == "U")
    if unit in ("minute", "hour"):
        after = now.replace(second=0, microsecond=0, tzinfo=None)
        after += timedelta(minutes=number * (60 if unit == "hour" else 1))
        return format_moment(after.replace(tzinfo=now.tzinfo))
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


def format_moment(moment: datetime) -> str:
    """Return a moment in ISO form, to the minute where it is no more exact."""
    exact = moment.second or moment.microsecond
    return moment.isoformat(timespec="auto" if exact else "minutes")


# --- What day and time a text says, if it says so beyond doubt.
#
# The rules: days count from today where ``now`` is; a weekday is the first one after today; a date
# without a year is the next one; 25.11. has its day first, 11/25/2026 is read because only one
# order is possible and 5/6/2026 is not read; an hour from 1 to 6 needs a half of the day, or two
# digits (03:00). What is not wholly understood is not read at all.

_ISO_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT: Final = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ tT](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)\s?([zZ]|[+-]\d{2}:?\d{2})?"
)
_CLOCK: Final = re.compile(r"(?:[01]\d|2[0-3]):[0-5]\d")

_DATE = r"W?C|D|KW|WK|X?W|WX|W?(?:[NO]MY?|M[NO]Y?)"
_TIME = r"P?A?P?(?:Z|T|QN|NHB|NHN|NH|(?<=[AP])N|N(?=P))P?"
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
    return format_moment(read if read.tzinfo else read.replace(tzinfo=now.tzinfo))


def _said(parts: Mapping[str, Sequence[Token]], now: datetime) -> str | None:
    try:
        if "later" in parts:
            return moment_after(parts["later"], now)
        day = day_of(parts["date"], now) if "date" in parts else None
        minutes = minutes_of(parts["time"]) if "time" in parts else None
    except (ValueError, OverflowError):  # there is no such day
        return None
    if ("date" in parts and day is None) or ("time" in parts and minutes is None):
        return None
    clock = time(*divmod(minutes, 60)) if minutes is not None else None
    if day is None:
        return clock.isoformat("minutes") if clock else None
    return format_moment(datetime.combine(day, clock, now.tzinfo)) if clock else day.isoformat()
