"""What a message plainly says is noted where it is missing, and only there."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.tools.continuity.next_messages import DATE, TITLE

from daruma.state.conversation import Clarification, each_of
from daruma.tools.continuity import fill_in

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)
TIME = replace(DATE, partial_args={"title": "Call"}, missing_fields=("start_time",))


@pytest.mark.parametrize(
    ("asked", "message", "noted"),
    [
        (DATE, "tomorrow", {"reminder_date": "2026-11-23"}),
        (DATE, "at nine", {}),
        (DATE, "tomorrow, and book a table", {}),
        (TIME, "at 9:30", {"start_time": "09:30"}),
        (TITLE, "tomorrow", {}),
        (replace(DATE, missing_fields=("reminder_date", "title")), "tomorrow", {}),
    ],
)
def test_the_one_missing_day_or_time_is_noted(
    asked: Clarification, message: str, noted: dict[str, str]
) -> None:
    """What is known stays; a time of day is no day, and a title is whatever the model makes it."""
    assert fill_in(asked, message, NOW).partial_args == asked.partial_args | noted


def test_it_is_noted_of_the_call_that_lacks_it() -> None:
    """Which need not be the first of several."""
    whole = replace(TITLE, missing_fields=())

    known = fill_in(replace(whole, also=(DATE,)), "2031-05-05", NOW)

    assert [each.partial_args for each in each_of(known)] == [
        whole.partial_args,
        DATE.partial_args | {"reminder_date": "2031-05-05"},
    ]
