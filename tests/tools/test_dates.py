"""Dates and times as people write them become ISO, or are not read at all."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daruma.tools.dates import has_day, moment_in

NOW = datetime(2026, 11, 22, 15, 0, 30, tzinfo=timezone(timedelta(hours=1)))
"""A Sunday."""

READ = {
    "2026-11-25": "2026-11-25",
    "25.11.2026": "2026-11-25",
    "25.11.26": "2026-11-25",
    "11/25/2026": "2026-11-25",
    "25/11/2026": "2026-11-25",
    "2026/11/25": "2026-11-25",
    "2026年11月25日": "2026-11-25",
    "11月25日": "2026-11-25",
    "Nov 25th": "2026-11-25",
    "Wednesday, November 25": "2026-11-25",
    "25. November": "2026-11-25",
    "29 February": "2028-02-29",
    "22.11.": "2026-11-22",
    "today": "2026-11-22",
    "tomorrow 9am": "2026-11-23T09:00+01:00",
    "tomorrow at nine": "2026-11-23T09:00+01:00",
    "Tomorrow, 12 pm": "2026-11-23T12:00+01:00",
    "tomorrow 12am": "2026-11-23T00:00+01:00",
    "tonight at 8": "2026-11-22T20:00+01:00",
    "noon tomorrow": "2026-11-23T12:00+01:00",
    "the day after tomorrow": "2026-11-24",
    "in two weeks": "2026-12-06",
    "3 days from now": "2026-11-25",
    "in a month": "2026-12-22",
    "in 2 hours": "2026-11-22T17:00+01:00",
    "next Monday": "2026-11-23",
    "Sunday": "2026-11-29",
    "Monday next week": "2026-11-23",
    "on Friday at 5pm": "2026-11-27T17:00+01:00",
    "tomorrow at half past nine": "2026-11-23T09:30+01:00",
    "nächsten Montag": "2026-11-23",
    "übermorgen um 9:15": "2026-11-24T09:15+01:00",
    "morgen um halb zehn": "2026-11-23T09:30+01:00",
    "am 25.11. um 9 Uhr 30": "2026-11-25T09:30+01:00",
    "in drei Tagen": "2026-11-25",
    "明天下午三点": "2026-11-23T15:00+01:00",
    "今晚八点": "2026-11-22T20:00+01:00",
    "下星期三上午九点半": "2026-11-25T09:30+01:00",
    "两周后": "2026-12-06",
    "3pm": "15:00",
    "15 Uhr": "15:00",
    "noon": "12:00",
    "03:00": "03:00",
    "2026-11-25T09:00": "2026-11-25T09:00+01:00",
    "2026-11-25 09:00:00Z": "2026-11-25T09:00+00:00",
    "2026-11-25T09:00:30.5+02:00": "2026-11-25T09:00:30.500000+02:00",
}
NOT_READ = (
    "5/6/2026",  # which is the month?
    "tomorrow at 3",  # by night?
    "at 3",
    "3:00",
    "tomorrow morning",  # when?
    "next week",  # on which day?
    "10",
    "may",
    "one",
    "once",
    "7/8",
    "Monday, November 25",  # it is a Wednesday
    "31.2.",
    "31 Feb",
    "2026-02-30",
    "2026-11-25T25:00",
    "2 at night",
    "tomorrow and friday",
    "tomorrow tomorrow",
    "buy milk tomorrow",
    "soon",
    "a may",
    "demain à 9h",  # other languages are the model's
    "mañana",
    "明日の午後3時",
    "",
    "   ",
    "tomorrow" * 100,
    "٢٥.١١.٢٠٢٦ x",
)


@pytest.mark.parametrize(("text", "moment"), READ.items())
def test_what_is_beyond_doubt_is_read(text: str, moment: str) -> None:
    """AS-01: from a Sunday afternoon on, in a zone one hour east of Greenwich."""
    assert moment_in(text, NOW) == moment


@pytest.mark.parametrize("text", NOT_READ)
def test_what_is_in_doubt_is_not_read(text: str) -> None:
    """Nothing is guessed: it is asked for."""
    assert moment_in(text, NOW) is None


@pytest.mark.parametrize("moment", READ.values())
def test_what_was_read_stays_what_it_is(moment: str) -> None:
    """A flow that is resumed on another day, elsewhere, reads it again."""
    later = datetime(2031, 1, 1, tzinfo=UTC)

    assert moment_in(moment, later) == moment


@given(st.text(max_size=100))
def test_any_text_is_read_or_not(text: str) -> None:
    """Nothing is raised, and what is read is read as the same again."""
    moment = moment_in(text, NOW)

    assert moment is None or moment_in(moment, NOW) == moment


WORDS = st.sampled_from(
    [
        "tomorrow",
        "um",
        "9",
        "99",
        "9999",
        "uhr",
        "in",
        "一",
        "周",
        "后",
        "next",
        "friday",
        "may",
        "31",
        ".",
        ":",
        "31.2.",
        "halb",
        "pm",
        "noon",
        "half",
        "past",
        "0",
        "12/31",
        "24",
        "feb",
        "1000000",
        "days",
        "year",
        "0.0.",
        "32/13/2026",
        "9:61",
    ]
)


@given(st.lists(WORDS, max_size=6))
def test_any_words_of_dates_are_read_or_not(words: list[str]) -> None:
    """Also years that there are not."""
    moment = moment_in(" ".join(words), NOW)

    assert moment is None or moment_in(moment, NOW) == moment


def test_the_offset_is_that_of_the_day_itself() -> None:
    """Winter has another one than summer."""
    berlin = datetime(2026, 7, 1, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))

    assert moment_in("1.12. um 9 Uhr", berlin) == "2026-12-01T09:00+01:00"
    assert moment_in("tomorrow at 9", berlin) == "2026-07-02T09:00+02:00"


def test_a_moment_has_a_day_or_is_a_time() -> None:
    """A reminder needs a day."""
    assert has_day("2026-11-25")
    assert has_day("2026-11-25T09:00+01:00")
    assert not has_day("09:00")
