"""Which characters hide: drawn as nothing, as something else, or obeyed by a terminal."""

import re
import unicodedata
from functools import cache
from typing import Final

BIDI: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols that are drawn as nothing."""

_SELECTORS = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_ORDINARY = (
    "(?<=[\u0590-\u1dff\u2600-\u27bf\u2c00-\ufdff\ufe0f\U00010000-\U0001ffff])[\u200c\u200d](?=[^\0-\u20ff]|\\w)"
    "|(?<=[\\d#*©®‼⁉\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]|(?<=[\u3400-\u9fff])[\U000e0100-\U000e01ef]"
    "|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
)
"""What joins letters of many scripts, and what emoji and flags are made of."""


def spelled(char: str) -> str:
    """Return a character as ``\\x1b``, ``\\u202e`` or ``\\U000e0041``."""
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_visible(char: str) -> bool:
    """Whether a character is drawn as itself; of all spaces only the plain one is."""
    return char.isprintable() and not is_hidden(char)


def is_hidden(char: str) -> bool:
    """Whether a character is not drawn; spaces, line feeds and tabs are no secret."""
    if char.isascii():
        return not char.isprintable() and char not in "\n\t"
    odd = not char.isprintable() and unicodedata.category(char) != "Zs"
    return odd or char in _BLANK_LETTERS or bool(_SELECTORS.match(char))


def is_control(char: str) -> bool:
    """Whether a character is a control character, or half of one (a lone surrogate)."""
    return unicodedata.category(char) in {"Cc", "Cs"}


@cache
def _ordinary() -> re.Pattern[str]:
    """Compiled when it is first needed, as it takes a while."""
    return re.compile(_ORDINARY)


def hiding_places(text: str) -> list[tuple[int, str]]:
    """Return position and character of all that hides, but for what ordinary text needs."""
    ordinary = {at for found in _ordinary().finditer(text) for at in range(*found.span())}
    return [
        (at, char)
        for at, char in enumerate(text)
        if is_hidden(char) and at not in ordinary and text[at : at + 2] != "\r\n"
    ]
