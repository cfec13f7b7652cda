"""What servers say about when to ask again."""

import pytest

from daruma.graph.models.provider_errors import retry_after

NOW = 1_000_000_000.0  # Sun, 09 Sep 2001 01:46:40 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "3"}, 3),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"Retry-After-Ms": "250", "Retry-After": "9"}, 0.25),
        ({"Retry-After-Ms": "soon", "Retry-After": "9"}, 9),
        ({"Retry-After": "Sun, 09 Sep 2001 01:47:10 GMT"}, 30),
        ({"Retry-After": "Sun, 09 Sep 2001 01:47:10 -0000"}, 30),
        ({"Retry-After": "Sun, 09 Sep 2001 01:46:10 GMT"}, 0),
        ({"Retry-After": "-7"}, 0),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "tomorrow"}, None),
        ({"Retry-After": ""}, None),
        ({"Content-Type": "text/plain"}, None),
        ({}, None),
    ],
)
def test_the_wait_is_read_as_it_is_written(headers: dict[str, str], seconds: float | None) -> None:
    """TL-17: in milliseconds, seconds, or as a date; what can not be read says nothing."""
    assert retry_after(headers, now=NOW) == seconds
