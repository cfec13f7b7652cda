"""Arguments that are as good as the same: other case, other white space, other punctuation."""

import re
from typing import Any

_PUNCTUATION = r"\s.,;:!?\"'`()\[\]{}…“”‘’/_-"
_SEPARATORS = re.compile(rf"[{_PUNCTUATION}]+(?!\d)")
_AROUND_SIGNS = re.compile(r"\s*([^\w\s])\s*")


def folded(value: Any) -> Any:
    """Return a JSON-able value in the form that its near-identical spellings share.

    What may carry meaning stays: numbers, the signs in and before them, operators, single
    characters, and texts of several lines, which are the content of something.
    """
    if isinstance(value, dict):
        return {key: folded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [folded(each) for each in value]
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    if len(text) < 2 or "\n" in text.strip():
        return text
    spaced = _SEPARATORS.sub(" ", text.casefold().strip().rstrip(".,;:!?"))
    return _AROUND_SIGNS.sub(r"\1", " ".join(spaced.split())) or text
