"""What a provider said in place of an answer is read whole, in the words and shapes of all."""

import json
from typing import Any

import pytest
from tests.graph.models.provider_words import OTHER, TOO_LARGE, Row

from daruma.graph.models._faults import (
    MAX_MESSAGE,
    ProviderFailure,
    read_failure,
    retry_after,
)

NOW = 1_000_000_000.0
HOUR = {"Retry-After": "3600"}


def read(
    body: Any, status: int | None = 400, headers: dict[str, str] | None = None
) -> ProviderFailure:
    return read_failure(status, headers or {}, body, now=NOW)


@pytest.mark.parametrize("row", [*TOO_LARGE, *OTHER], ids=lambda row: row.who)
def test_what_providers_say_is_understood(row: Row) -> None:
    """TL-17a: the reason, and a number for a limit only where the words say so."""
    found = read(row.body, row.status)

    assert (found.reason, found.limit) == (row.reason, row.limit)


@pytest.mark.parametrize("row", [*TOO_LARGE, *OTHER], ids=lambda row: row.who)
def test_it_is_the_same_as_a_text(row: Row) -> None:
    """As a client that does not parse the body hands it over, bytes too."""
    text = row.body if isinstance(row.body, str) else json.dumps(row.body)

    assert read(text, row.status).reason == row.reason
    assert read(text.encode(), row.status).limit == row.limit


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 210000),
        ("input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000", 207192),
        ("maximum context length is 4096 tokens, you requested 5012 tokens", 5012),
        ("maximum context length is 4096 tokens, your request has 5012 input tokens", 5012),
        ("maximum context length is 4096 tokens, your prompt has many", None),
    ],
)
def test_what_was_sent_is_read_too(words: str, sent: int | None) -> None:
    """In the provider's tokens, to tell how they differ from ours."""
    assert read(words).sent == sent


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        (HOUR, "no", 3600),
        (HOUR, "try again in 2s", 3600),
        ({}, "Please try again in 7.5s.", 7.5),
        ({}, "Please try again in 1m7.5s.", 67.5),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please retry after 6 seconds.", 6),
        ({}, "please wait 2 minutes", 120),
        ({}, {"error": {"message": "no", "details": [{"retryDelay": "35s"}]}}, 35),
        ({}, "no", None),
    ],
)
def test_the_wait_is_in_headers_or_words(
    headers: dict[str, str], body: Any, wait: float | None
) -> None:
    """TL-17a: the headers count before the words."""
    assert read(body, 429, headers).wait == wait


@pytest.mark.long
@pytest.mark.parametrize(
    ("body", "limit"),
    [
        (f"maximum context length is {'9' * 5000} tokens, you sent {'9' * 5000} tokens", None),
        (f"max_tokens exceed context limit: {'9' * 5000} + {'9' * 5000} > 200000", 200000),
        (f"max_tokens must be {'9' * 5000}", None),
        ({"error": {"message": "[" * 60_000}}, None),
        ("[" * 60_000 + "]" * 60_000, None),
        (f"try again in {'9' * 5000}s", None),
    ],
    ids=["context", "sum", "answer", "deep words", "deep body", "wait"],
)
def test_what_can_not_be_read_is_no_failure_of_the_reader(body: Any, limit: int | None) -> None:
    """TL-17a: numbers of thousands of digits, and lists within lists."""
    found = read(body, 429)

    assert found.limit in (None, limit)
    assert found.wait is None or found.wait == 1e9


def test_words_are_one_line_without_keys_and_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """And bounded: some send whole pages."""
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret-key")
    body = {"error": {"message": "no\x1b[2J very-secret-key\n" + "x" * 9000}}

    words = read(body).words

    assert words.startswith("no [2J [key] xxx")
    assert len(words) == MAX_MESSAGE
    assert words.isprintable()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "one", "code": "c"}}, "one"),
        ({"error": "two"}, "two"),
        ([{"error": {"message": "three"}}], "three"),
        ({"detail": "four"}, "four"),
        ({"detail": [{"loc": ["body"], "msg": "five", "input": "the request"}]}, "five"),
        ({"message": "six"}, "six"),
        ("<html><title>seven</title><body>page</body></html>", "seven"),
        ("<p>eight &amp; more</p>", "eight & more"),
        ("nine", "nine"),
        ({"error": {"code": "ten"}}, "ten"),
        ({"odd": "eleven"}, '{"odd": "eleven"}'),
        ("Error code: 400 - twelve", "twelve"),
        ("[thirteen", "[thirteen"),
        ({"error": {"message": "outer", "metadata": {"raw": '{"error": "inner"}'}}}, "outer inner"),
        (None, ""),
        ("", ""),
        (17, ""),
        ({"error": {"error": {"error": {"error": None}}}}, ""),
    ],
)
def test_the_words_are_found_in_every_shape(body: Any, words: str) -> None:
    """TL-17a: an object, a text, a list, `detail`, a page."""
    assert read(body).words == words


# --- What servers say about when to ask again.


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
        ({"Retry-After": "9" * 400}, 1e9),
        ({"Retry-After": "Sunday, 09-Sep-01 01:47:10 GMT"}, 30),
        ({"Retry-After": "Sun Sep  9 01:47:10 2001"}, 30),
        ({"Retry-After-Ms": "-5"}, 0),
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
