"""What differs between two runs of the same thing and says nothing: durations, addresses, times."""

import re
from typing import Final

_ETA = r"(?<!eta \d)(?<!eta: \d)(?<!remaining: \d)"
_STILL = r"(?!\s*(?:left|remaining|to go))"
_UNIT = r"(?:ns|[µu]s|ms|s|secs?|seconds?|min|minutes?|hours?)\b"

# Both begin with the digit itself, and look back from there: a search then goes from digit to
# digit, which is ten times as quick as asking at each place of a long output what stands before it.
_MOMENT_ALONE = (
    r"\d(?<!\w\d)(?:\d{3}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{_ETA}\d:\d\d:\d\d(?:[.,]\d+)?\b{_STILL})"
)
_DURATION_ALONE = (
    rf"\d(?<![\w.]\d)(?=\d*(?:[.,]\d+)?\s?[nuµmsh]){_ETA}"
    r"\d*(?:\s?h(?:ours?)?\s?(?:\d+\s?m(?:in)?\s?)?\d+|\s?m(?:in)?\s?\d+)?(?:[.,]\d+)?"
    rf"\s?{_UNIT}{_STILL}"
)
_MOMENTS = (
    re.compile(_MOMENT_ALONE, re.IGNORECASE),
    re.compile(
        rf"{_MOMENT_ALONE}|(?<=timestamp)\W{{1,4}}1\d{{9,12}}(?:\.\d+)?",
        re.IGNORECASE,
    ),
)
_DURATIONS = (
    re.compile(_DURATION_ALONE, re.IGNORECASE),
    re.compile(
        rf"{_DURATION_ALONE}|(?<=elapsed|latency|runtime)\W{{1,4}}\d+(?:\.\d+)?\b"
        r"|(?<=duration)(?:_m?s)?\W{1,4}\d+(?:\.\d+)?\b",
        re.IGNORECASE,
    ),
)
"""Without and with those that a word names."""

_OF_ASCII = tuple(
    re.compile(alone.replace(r"\d", "[0-9]", 1), re.IGNORECASE)
    for alone in (_MOMENT_ALONE, _DURATION_ALONE)
)
"""The first of each, for texts that have no other digits: these are looked for twice as quickly."""

_OF_A_CLOCK = re.compile(r":\d")
"""What each of them holds that no word names: to look for this first takes a tenth of the time."""

_NAMING: Final = ("timestamp", "elapsed", "latency", "runtime", "duration")
_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}", re.IGNORECASE)
_PROCESS = re.compile(r"\b(p?pid)\b\W{0,3}\d+", re.IGNORECASE)
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")
_IDENTIFIER = re.compile(r"\b[0-9a-f][0-9a-f-]{7,}\b", re.IGNORECASE)


def without_noise(text: str) -> str:
    """Return a text without durations, points in time, memory addresses and ids of processes.

    The time that something still needs is no noise: a wait that gets shorter is going on. What is
    noise by a word is only looked for in a text that holds the word: outputs can be long.
    """
    lower = _lower(text)
    named = any(map(lower.__contains__, _NAMING))
    moments, durations = _MOMENTS[named], _DURATIONS[named]
    if text.isascii() and not named:
        moments, durations = _OF_ASCII
    if named or _OF_A_CLOCK.search(text):
        text = moments.sub("<time>", text)
    text = durations.sub("<duration>", text)
    if "0x" in lower:
        text = _ADDRESS.sub("<address>", text)
    if "pid" in lower:
        text = _PROCESS.sub(r"\1 <number>", text)
    return _TEMPORARY.sub("<temporary>", text) if "tmp" in text else text


def _lower(text: str) -> str:
    """Return a text in which a word is found in all spellings that are one without case."""
    lower = text.casefold()
    return lower if text.isascii() else lower.replace("i\u0307", "i").replace("ı", "i")


def without_numbers(text: str) -> str:
    """Return an error's text without what is new each time it comes: numbers and identifiers."""
    return " ".join(re.sub(r"\d+", "#", without_ids(text)).split())


def without_ids(text: str) -> str:
    """Return a text without noise and without identifiers, such as hashes; other numbers stay."""
    # A look ahead for the digit would take quadratic time: seconds for one result.
    return _IDENTIFIER.sub(_unless_a_word, without_noise(text))


def _unless_a_word(found: re.Match[str]) -> str:
    return "#" if re.search(r"\d", found[0]) else found[0]
