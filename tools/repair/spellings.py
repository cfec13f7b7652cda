"""Where a value stands in a broken text, in whichever spelling JSON or Python has for it."""

import json
import re
from typing import Any, Final

QUOTES: Final = "\"'`"
EMPTY: Final = re.compile(r"(?<![\"'`])(?:\"\"|''|\\\"\\\")(?![\"'`])")
"""Quotes with nothing between them; within others they are a text of their own."""
EMPTY_OBJECT: Final = re.compile(r"\{\s*\}")
EMPTY_LIST: Final = re.compile(r"\[\s*\]")

Span = tuple[int, int]


def find_value(raw: str, leaf: Any, at: int, fixed: frozenset[str]) -> Span | None:
    """Return where a value stands next, whole; ``fixed`` texts may stand in another case."""
    if isinstance(leaf, str) and leaf:
        return _find_text(raw, leaf, at, any_case=leaf in fixed)
    if leaf == "" or isinstance(leaf, (dict, list)):
        empty = EMPTY if leaf == "" else EMPTY_OBJECT if isinstance(leaf, dict) else EMPTY_LIST
        found = empty.search(raw, at)
    else:
        word = rf"(?<![\w.+-]){re.escape(json.dumps(leaf))}(?![\w.+-])"
        flags = re.IGNORECASE if isinstance(leaf, bool) else re.NOFLAG
        found = re.compile(word, flags).search(raw, at)
    return found.span() if found else None


def spellings(text: str) -> list[str]:
    """Return how a text may be written: escaped, half escaped, escaped twice, or as it is."""
    whole = json.dumps(text, ensure_ascii=False)[1:-1]
    ascii_only = json.dumps(text)[1:-1]
    quotes = whole.replace('\\"', '"')
    breaks = whole.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
    once_more = (json.dumps(each, ensure_ascii=False)[1:-1] for each in (whole, ascii_only))
    single = quotes.replace("'", "\\'")
    forms = (text, whole, ascii_only, quotes, breaks, single, repr(text)[1:-1], *once_more)
    return list(dict.fromkeys(forms))


def _find_text(raw: str, text: str, at: int, *, any_case: bool) -> Span | None:
    """Return the first place, there the longest, that is quoted on both sides."""
    raw, text = (raw.lower(), text.lower()) if any_case else (raw, text)
    places = []
    for form in spellings(text):
        start = raw.find(form, at)
        while start >= 0 and not _quoted(raw, start, start + len(form)):
            start = raw.find(form, start + 1)
        if start >= 0:
            places.append((start, start + len(form)))
    return min(places, key=lambda span: (span[0], -span[1]), default=None)


def _quoted(raw: str, start: int, end: int) -> bool:
    behind = raw[end : end + 2].removeprefix("\\")  # two backslashes are one of the text's own
    return raw[start - 1 : start] in QUOTES and start > 0 and behind[:1] in QUOTES and behind != ""
