"""How many tokens a text is, without a tokenizer: an estimate that is seldom too small. Pure.

Tokenizers cut a text into words, numbers, runs of marks and runs of blanks, and those into pieces
that they know. Each is counted as many as GPT-4's tokenizer (cl100k_base) makes of it in ordinary
text, and a twentieth is added: of a table of samples (English, code, JSON, logs, Chinese and
others; ``tests/tools/context_window/test_estimate.py``) none is more than its estimate. Letters at
random, as in keys, can be some hundredths more.
"""

import re
from math import ceil
from typing import Final

_KINDS: Final = {
    "word": r"[A-Z]?[a-z]+|[A-Z]+",
    "number": r" ?[0-9]+",
    "blank": r"[ \t]{2,}|\s*[\r\n]+",
    "space": r" ",
    "other": r"[^\x00-\x7f]+",
    "mark": r"[\x00-\x7f]",
}
_PARTS: Final = re.compile("|".join(_KINDS.values()))
_KIND: Final = re.compile("|".join(f"(?P<{kind}>{part})" for kind, part in _KINDS.items()))
_LETTERS: Final = 6
"""Letters of a word that is one token in all likelihood; of a longer one each three are another."""
_SHORT: Final = 32
"""Characters of a part that is remembered: longer ones are seldom met twice."""
_MOST_KNOWN: Final = 20_000
"""Parts that are remembered: some 2 MB."""
_SPARE: Final = 1.05


class Weights(dict[str, float]):
    """What parts of texts weigh, found out once for each that is short: most are in many texts."""

    def __missing__(self, part: str) -> float:
        """Weigh a part; what is short is remembered, and all forgotten where that is too much."""
        weight = _tokens(part)
        if len(part) <= _SHORT:
            if len(self) >= _MOST_KNOWN:
                self.clear()
            self[part] = weight
        return weight


_WEIGHTS: Final = Weights()


def estimate(text: str) -> int:
    """Return the tokens that a text has in all likelihood, or some more."""
    return ceil(_SPARE * sum(map(_WEIGHTS.__getitem__, _PARTS.findall(text))))


def _tokens(part: str) -> float:
    match = _KIND.fullmatch(part)
    kind = match and match.lastgroup
    if kind == "word":
        rest = len(part) - (1 if part.isupper() else _LETTERS)
        return 1 + max(0, ceil(rest / 3))
    if kind == "number":
        return ceil(len(part) / 3) if part[0] != " " else 1 + ceil((len(part) - 1) / 3)
    if kind == "other":
        return sum(_weight(ord(each)) for each in part)
    return 0 if kind == "space" else 1


def _weight(code: int) -> float:
    """Chinese has a token or two for each character; what no tokenizer knows has one for a byte."""
    if code < 0x800:  # Latin with accents, Greek, Cyrillic, Hebrew, Arabic
        return 1.0
    if 0x3000 <= code < 0xA000 or 0xAC00 <= code < 0xD7B0 or 0xFF00 <= code < 0xFFF0:
        return 1.4
    return 1.5 if code < 0x2000 else 3.0
