"""Arguments that are as good as the same: other case, other white space, other punctuation."""

import re
from typing import Any

_AROUND = r"[\s.,;:!?\"'`…“”‘’/]+"
_BEFORE = re.compile(rf"^{_AROUND}(?!\d)")
_AFTER = re.compile(rf"{_AROUND}$")
_BETWEEN_WORDS = re.compile(r"[,;:!?]+(?=\s)")


def folded(value: Any) -> Any:
    """Return a JSON-able value in the form that its near-identical spellings share.

    What may carry meaning stays: numbers, signs within and between words (paths, commands and code
    are made of them), single characters, and texts of several lines, the content of something.
    """
    if isinstance(value, dict):
        return {key: folded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [folded(each) for each in value]
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    if len(text) < 2 or "\n" in text.strip():
        return text
    bare = _AFTER.sub("", _BEFORE.sub("", text.casefold()))
    return " ".join(_BETWEEN_WORDS.sub("", bare).split()) or text
