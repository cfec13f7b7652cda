"""Telling from a provider's words that a request was more than its model can read. Pure.

OpenAI has the code `context_length_exceeded`; who speaks its protocol (vLLM, llama.cpp, Ollama,
proxies before other providers) says it in words alone.
"""

import re
from typing import Final

from daruma.state.failure import TooLong

_STATUSES: Final = frozenset({400, 413, 422})
_SAYS_SO: Final = re.compile(
    r"context_length_exceeded|context[ _]?(length|window|size)|maximum context|prompt is too long"
    r"|input is too long|too many (input )?tokens|input token count|maximum prompt length"
    r"|reduce the length of the (messages|prompt|input)"
    r"|exceeds? the (model's )?max\w* .{0,30}tokens",
    re.IGNORECASE,
)
_NUMBER: Final = r"([0-9][0-9,_]{2,})"
_MOST: Final = (
    rf"(?:maximum|max)\D{{0,40}}(?:length|window|size|tokens|of|is|=|:)\D{{0,20}}{_NUMBER}",
    rf"{_NUMBER} (?:tokens )?(?:maximum|max\b)",
    rf"(?:window|context|limit)\D{{0,30}}{_NUMBER}",
)
_SENT: Final = (
    rf"(?:resulted in|requested|contains?(?: at least)?|count \(|too long:)\D{{0,20}}{_NUMBER}",
)


def too_long(words: str, status: int | None) -> TooLong | None:
    """Return what a refusal says of the length of a request, None if it is about something else."""
    if status not in _STATUSES or not _SAYS_SO.search(words):
        return None
    most, sent = _first(_MOST, words), _first(_SENT, words)
    return TooLong(most, sent if sent > most else 0)


def _first(patterns: tuple[str, ...], words: str) -> int:
    found = (re.search(pattern, words, re.IGNORECASE) for pattern in patterns)
    return next((int(re.sub(r"[,_]", "", each[1])) for each in found if each), 0)
