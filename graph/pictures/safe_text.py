"""Text of models, tools and people made safe to show: it may hold what a browser obeys."""

import re
from html import escape
from typing import Final

from daruma.state.text import hiding_places, spelled
from daruma.tools.text.secrets import without_keys

_MAY_HIDE: Final = re.compile(r"[^\t\n -~]")
_READ: Final = 4
"""Times the limit that is looked at: keys are masked before the cut, which could halve one."""


def cut_text(text: str, limit: int) -> tuple[str, int]:
    """Return the beginning of a text without keys and hidden characters, and how much is left out.

    Counts characters. Control characters and marks that turn the direction of writing are spelled,
    as ``\\x1b`` and ``\\u202e``.
    """
    read = without_keys(text[: limit * _READ])
    return _spelled(read[:limit]), max(len(text) - limit, 0)


def _spelled(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if not _MAY_HIDE.search(text):
        return text
    chars = list(text)
    for at, char in hiding_places(text):
        chars[at] = spelled(char)
    return "".join(chars)


def plain_line(text: str, limit: int = 200) -> str:
    """Return a text on one line of at most ``limit`` characters, and a mark if there are more."""
    shown, left = cut_text(" ".join(text[: limit * _READ].split()), limit)
    return shown + ("…" if left else "")


def safe_line(text: str, limit: int = 200) -> str:
    """Return a text as HTML on one line of at most ``limit`` characters."""
    return escape(plain_line(text, limit))


def safe_block(text: str, limit: int, whole: str = "") -> str:
    """Return a text as HTML, its beginning; ``whole`` says where the rest of it is."""
    shown, left = cut_text(text, limit)
    where = f"; the whole is in {whole}" if whole else ""
    return escape(shown) + (f"\n[… {left:,} more characters{escape(where)}]" if left else "")
