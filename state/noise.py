"""What differs between two runs of the same thing and says nothing: durations, addresses, times."""

import re

_ETA = r"(?<!eta )(?<!eta: )(?<!remaining: )"
_STILL = r"(?!\s*(?:left|remaining|to go))"
_MOMENT = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{_ETA}\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b{_STILL}"
    r"|(?<=timestamp)\W{1,4}1\d{9,12}(?:\.\d+)?",
    re.IGNORECASE,
)
_DURATION = re.compile(
    rf"{_ETA}(?<![\w.])(?:\d+\s?h(?:ours?)?\s?)?(?:\d+\s?m(?:in)?\s?)?"
    r"\d+(?:[.,]\d+)?\s?(?:ns|[µu]s|ms|s|secs?|seconds?|min|minutes?|hours?)\b"
    rf"{_STILL}|(?<=elapsed|latency|runtime)\W{{1,4}}\d+(?:\.\d+)?\b"
    r"|(?<=duration)(?:_m?s)?\W{1,4}\d+(?:\.\d+)?\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}", re.IGNORECASE)
_PROCESS = re.compile(r"\b(p?pid)\b\W{0,3}\d+", re.IGNORECASE)
_TEMPORARY = re.compile(r"\btmp[a-z0-9_]{8}\b")
_IDENTIFIER = re.compile(r"\b[0-9a-f][0-9a-f-]{7,}\b", re.IGNORECASE)


def without_noise(text: str) -> str:
    """Return a text without durations, points in time, memory addresses and ids of processes.

    The time that something still needs is no noise: a wait that gets shorter is going on.
    """
    text = _MOMENT.sub("<time>", text)
    text = _DURATION.sub("<duration>", text)
    text = _ADDRESS.sub("<address>", text)
    text = _PROCESS.sub(r"\1 <number>", text)
    return _TEMPORARY.sub("<temporary>", text)


def without_numbers(text: str) -> str:
    """Return an error's text without what is new each time it comes: numbers and identifiers."""
    return " ".join(re.sub(r"\d+", "#", without_ids(text)).split())


def without_ids(text: str) -> str:
    """Return a text without noise and without identifiers, such as hashes; other numbers stay."""
    # A look ahead for the digit would take quadratic time: seconds for one result.
    return _IDENTIFIER.sub(_unless_a_word, without_noise(text))


def _unless_a_word(found: re.Match[str]) -> str:
    return "#" if re.search(r"\d", found[0]) else found[0]
