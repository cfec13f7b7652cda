"""What a quoted string in a text means, where every dialect agrees."""

import json
import re
from typing import Final

from daruma.tools.repair.outcome import Unreadable

LINE_BREAK: Final = re.compile(r"[\n\r]")
CONTROL: Final = re.compile(r"[\x00-\x1f]")
WRITTEN_CONTROL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[nrtbf]")
ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|\"", re.DOTALL)
MARKS: Final = frozenset(["", *"{}[](),:"])
KEPT: Final = frozenset('"\\nrtbfu')
LONE_BACKSLASH: Final = re.compile(r"\\[dDwWsS.]")
ONLY_LONE: Final = re.compile(r"[^\\]*(?:\\[dDwWsS.][^\\]*)*")


def double_quoted(body: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return a JSON string's value and the rungs it took. Raises :class:`Unreadable`.

    Where no backslash of the whole text escapes anything, each stands for itself: they are those
    of a regular expression that its writer forgot to escape.
    """
    if LONE_BACKSLASH.search(body) and ONLY_LONE.fullmatch(text):
        return _whole(body), ("lone backslashes",)
    return _json(body)


def single_quoted(body: str) -> tuple[str, tuple[str, ...]]:
    """Return the value of a string in single quotes, which Python and JSON5 read alike."""
    value, rungs = _json(ESCAPE.sub(_as_json, body))
    return value, ("single quotes", *rungs)


def triple_quoted(body: str) -> tuple[str, tuple[str, ...]]:
    """Return the value of a string in three quotes. Raises :class:`Unreadable` for two readings.

    They are two with a backslash in it, and where the three quotes may as well be an empty string
    and one quote too many: then a mark of JSON stands next to them.
    """
    bare = body.strip()
    if "\\" in body or bare[:1] in MARKS or bare[-1:] in MARKS:
        raise Unreadable("a string of three quotes can be read in two ways")
    return _whole(body), ("triple quotes",)


def _as_json(found: re.Match[str]) -> str:
    escape = found.group(1)
    if escape is None:
        return '\\"'
    if escape == "'":
        return "'"
    if escape[0] == "x" and len(escape) == 3:
        return f"\\u00{escape[1:]}"
    if escape[0] not in KEPT:
        raise Unreadable(f"\\{escape[0]} in a string can be read in two ways")
    return found.group()


def _json(body: str) -> tuple[str, tuple[str, ...]]:
    raw = CONTROL.search(body) is not None
    # Where lines are broken as they are, a written \n may well be two characters of the text.
    if raw and LINE_BREAK.search(body) and WRITTEN_CONTROL.search(body):
        raise Unreadable("a string has both real and written line breaks: escape them all")
    try:
        value = json.loads(f'"{body}"', strict=False)
    except ValueError:
        raise Unreadable("a string holds a backslash that escapes nothing") from None
    return _whole(str(value)), ("raw newline in string",) if raw else ()


def _whole(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unreadable("a string holds half a character (a lone surrogate)") from None
    return value
