"""What a message says besides a day or a time."""

from datetime import UTC, datetime

import pytest

from daruma.tools.continuity._phrases import besides_time
from daruma.tools.dates import plain

NOW = datetime(2026, 11, 22, 15, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "besides"),
    [
        ("around 4 pm tomorrow", []),
        ("tomorrow works for me", []),
        ("Am besten Freitag gegen 17 Uhr", ["besten"]),
        ("el viernes por la tarde", []),
        ("mail Bob tomorrow", ["mail", "bob"]),
        ("not tomorrow", ["not"]),
        ("five apples", None),
        ("", None),
    ],
)
def test_words_that_say_nothing_of_time_are_left(text: str, besides: list[str] | None) -> None:
    """Those that say nothing by themselves are not; a word that negates is."""
    assert besides_time(plain(text), NOW) == besides
