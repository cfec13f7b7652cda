"""What two outputs of the same thing may differ in, and what they may not."""

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daruma.state.text import without_noise, without_numbers

NOISE = [
    ("1 failed in 0.03s", "1 failed in 0.41s"),
    ("built in 1m 3s", "built in 58 s"),
    ("took 12 ms", "took 7 ms"),
    ('{"elapsed": 1.25}', '{"elapsed": 3.5}'),
    ('{"duration_ms": 12}', '{"duration_ms": 31}'),
    ("at 2026-11-21T23:45:17.250Z ok", "at 2026-11-22T00:01:02Z ok"),
    ("23:45:17 heartbeat", "23:46:02 heartbeat"),
    ('"timestamp": 1763768717', '"timestamp": 1763768999.5'),
    ("<Job at 0x7fce75bf4240>", "<Job at 0x7fce84448e50>"),
    ("worker pid=4121 ended", "worker pid=977 ended"),
    ("in /var/tmpab12cd34/x", "in /var/tmpzz12cd3_/x"),
]
MEANING = [
    ("37 %", "38 %"),
    ("rows: 120", "rows: 180"),
    ("exit code 1", "exit code 2"),
    ("12 s left", "7 s left"),
    ("ETA 12s", "ETA 7s"),
    ("a\nb", "a\nb\nc"),
    ("commit 9f3c21aa", "commit 77be01d3"),
    ("step 3 of 9", "step 4 of 9"),
    ("due 2026-11-21", "due 2026-11-22"),
    ("at 12:30", "at 13:30"),
    ("v1.2.3", "v1.2.4"),
]


@pytest.mark.parametrize(("one", "other"), NOISE)
def test_noise_is_left_out(one: str, other: str) -> None:
    """A test run that takes longer is the same test run."""
    assert without_noise(one) == without_noise(other)


@pytest.mark.parametrize(("one", "other"), MEANING)
def test_what_may_be_progress_stays(one: str, other: str) -> None:
    """A poll whose answer changes is no loop."""
    assert without_noise(one) != without_noise(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("line 3: no such row 17", "line 9: no such row 18"),
        ("request 3f2a91bc77de failed", "request 11c0ab0044fa failed"),
        ("job 550e8400-e29b-41d4-a716-446655440000", "job 123e4567-e89b-12d3-a456-426614174000"),
        ("broken\n  pipe", "broken pipe"),
    ],
)
def test_an_error_is_the_same_without_its_numbers(one: str, other: str) -> None:
    """Ids and line numbers are new each time a thing goes wrong in the same way."""
    assert without_numbers(one) == without_numbers(other)


def test_errors_in_other_words_differ() -> None:
    """The second may be a step on from the first."""
    assert without_numbers("no module named a") != without_numbers("no module named b")


ETA = r"(?<!eta )(?<!eta: )(?<!remaining: )"
STILL = r"(?!\s*(?:left|remaining|to go))"
MOMENT = (
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{ETA}\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b{STILL}"
    r"|(?<=timestamp)\W{1,4}1\d{9,12}(?:\.\d+)?"
)
DURATION = (
    rf"{ETA}(?<![\w.])(?:\d+\s?h(?:ours?)?\s?)?(?:\d+\s?m(?:in)?\s?)?"
    r"\d+(?:[.,]\d+)?\s?(?:ns|[µu]s|ms|s|secs?|seconds?|min|minutes?|hours?)\b"
    rf"{STILL}|(?<=elapsed|latency|runtime)\W{{1,4}}\d+(?:\.\d+)?\b"
    r"|(?<=duration)(?:_m?s)?\W{1,4}\d+(?:\.\d+)?\b"
)
PLAINLY = [
    (MOMENT, "<time>"),
    (DURATION, "<duration>"),
    (r"\b0x[0-9a-f]{4,}", "<address>"),
    (r"\b(p?pid)\b\W{0,3}\d+", r"\1 <number>"),
    (r"(?-i:\btmp[a-z0-9_]{8}\b)", "<temporary>"),
]
"""What noise is, in the plainest words."""

PIECES = st.sampled_from(
    [
        *("1", "12", "17", "2026-11-21", "T", " ", ":", "10:11:12", ":13", "1700000000", ".", ","),
        *("eta ", "ETA: ", "Remaining: ", " left", " to go", "h", "m", "s", "ms", "µs", "μS", "ns"),
        *(
            "hour",
            "sec",
            "seconds",
            "min",
            "minutes",
            "-",
            "+0100",
            "Z",
            "\n",
            "_",
            "_ms",
            "(",
            "=",
        ),
        *("timestamp", "tımestamp", "elapſed", "Elapsed", "latency", "RUNTİME", "duration"),
        *("0x", "0X", "deadbeef", "pid", "PİD", "ppıd", "tmp", "abcdefgh", "é", "٣", "<", "="),
    ]
)


@given(st.lists(PIECES, max_size=14).map("".join))
@example("took 1h 2m 3.5s, 12:13:14,5 left, at 2026-11-21 10:11:12.3+01:00")
@example("duration_ms: 12.5s elapsed = 1m 3 s, elapſed: 3")
@example("ppıd 12")
@example("PİD: 3, elapſed: 1, 0X12aB at 10:11:12 in tmpabcdefgh")
@example("1h2m3s 4m5 s 6 7ms 8.9ms .5s a1s 1,5s 1_s")
def test_noise_is_found_as_quickly_as_it_is_plainly(text: str) -> None:
    """What stands on record of an older run compares with what is made of the same text now."""
    plainly = text
    for pattern, mark in PLAINLY:
        plainly = re.sub(pattern, mark, plainly, flags=re.IGNORECASE)

    assert without_noise(text) == plainly


@pytest.mark.parametrize(
    "text",
    [
        "a-" * 15_000,
        "a-" * 15_000 + "g",
        "1 " * 15_000,
        "1," * 15_000,
        "1m" * 15_000,
        "1:" * 15_000,
    ],
)
def test_a_long_result_takes_no_time(text: str) -> None:
    """Quadratic work on the 30,000 characters of a tool's result would stop the whole process."""
    began = time.process_time()
    without_numbers(text)

    assert time.process_time() - began < 1


@pytest.mark.parametrize(("one", "other"), NOISE)
@given(text=st.text("0123456789:. -TZsmh\t\n\x1cETAleftgo%a", max_size=40))
def test_a_sign_outside_ascii_makes_nothing_noise(one: str, other: str, text: str) -> None:
    """Texts of ASCII are looked through in a quicker way, and for the same."""
    for each in (f"{text}\n{one}", f"{other}\n{text}", text):
        assert without_noise(f"{each}\nä") == f"{without_noise(each)}\nä"
