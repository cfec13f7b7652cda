"""The grammar of JSON, JSON5 and Python's literals, as far as they agree (TL-10)."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

# --- What becomes of arguments that were looked at for repair.

Problem = Literal["invalid_json", "too_large", "cut_off", "invalid_args"]


@dataclass(frozen=True)
class Repaired:
    """Arguments that are certain, and every rung that was used to get them, in order."""

    args: dict[str, Any]
    rungs: tuple[str, ...]


@dataclass(frozen=True)
class Refused:
    """Why nothing is certain; ``reason`` is one line for the model."""

    problem: Problem
    reason: str


class Unreadable(Exception):
    """Raised by what reads a text that has no certain reading; its text says why."""


class CutOff(Unreadable):
    """Raised where a text ends before its end, though all of it fits so far."""


# --- When two JSON values are one.


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are one, ``1``, ``1.0`` and ``true`` being three."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


# --- Two kinds of quotes in one text: a string in one kind may be several in the other.

QUOTE_AND_MARK: Final = {
    "'": re.compile(r'"\s*[:,}\]]|[{\[,:]\s*"'),
    '"': re.compile(r"'\s*[:,}\]]|[{\[,:]\s*'"),
}
"""The other kind of quote next to a mark of JSON: what is in a string looks like its outside."""


class Quotes:
    """Remembers the quotes of a text, and whether the inside of a string looks like its outside."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._doubtful = False

    def add(self, quote: str, value: str) -> None:
        """Remember a string, and raise :class:`Unreadable` where all of them have two readings."""
        self._kinds.add(quote)
        other = QUOTE_AND_MARK.get(quote)
        self._doubtful |= other is not None and other.search(value) is not None
        if self._doubtful and len(self._kinds) > 1:
            raise Unreadable("two kinds of quotes can be read in two ways")


# --- What a quoted string in a text means, where every dialect agrees.

LINE_BREAK: Final = re.compile(r"[\n\r]")
CONTROL: Final = re.compile(r"[\x00-\x1f]")
WRITTEN_CONTROL: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[nrtbf]")
ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|\"", re.DOTALL)
MARKS: Final = frozenset(["", *"{}[](),:"])
KEPT: Final = frozenset('"\\nrtbfu')
LONE_BACKSLASH: Final = re.compile(r"\\[dDwWsS.]")
ONLY_LONE: Final = re.compile(r"[^\\]*(?:\\[dDwWsS.][^\\]*)*")


@lru_cache(maxsize=1)
def _only_lone(text: str) -> bool:
    """Once for a text, and not for each of its strings (SE-07)."""
    return ONLY_LONE.fullmatch(text) is not None


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


# --- The tokens of a text that wants to be JSON: also JSON5's and Python's, comments left out.

Kind = Literal["mark", "string", "number", "word"]

DIGITS: Final = 400
"""Longest number that is read: more digits than any float has, fewer than Python refuses."""
SKIPPED: Final = re.compile(r"(\s+)|(//[^\n\r]*|\#[^\n\r]*|/\*.*?\*/)", re.DOTALL)
TRIPLE: Final = re.compile(r'"""(?!")(.*?)"""(?!")' + r"|'''(?!')(.*?)'''(?!')", re.DOTALL)
DOUBLE: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
SINGLE: Final = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
CURLY: Final = re.compile('“([^“”"\\\\]*)”')
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.+-])")
WORD: Final = re.compile(r"[A-Za-z_$][\w$-]*")


class Token(NamedTuple):
    """A mark (one of ``{}[](),:``), a string, a number or a bare word, and where it stands."""

    kind: Kind
    value: Any
    start: int
    end: int
    rungs: tuple[str, ...] = ()


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """Yield the tokens from ``start`` on. Raises :class:`Unreadable` where there is none.

    Lazily, so that a reader who stops early has spent no time on the rest.
    """
    rungs: tuple[str, ...] = ()
    while start < len(text):
        if skipped := SKIPPED.match(text, start):
            rungs = ("comments",) if skipped.group(2) else rungs
            start = skipped.end()
            continue
        token = _token(text, start)
        yield token._replace(rungs=(*rungs, *token.rungs))
        rungs, start = (), token.end


def _token(text: str, start: int) -> Token:
    first = text[start]
    if first in "{}[](),:":
        return Token("mark", first, start, start + 1)
    if first in "\"'“":
        return _string(text, start)
    if number := NUMBER.match(text, start):
        if number.end() - start > DIGITS:
            raise Unreadable("a number has too many digits")
        value: int | float = json.loads(number.group())
        if isinstance(value, float) and not math.isfinite(value):
            raise Unreadable(f"{number.group():.20} is too large a number")
        return Token("number", value, start, number.end())
    if word := WORD.match(text, start):
        return Token("word", word.group(), start, word.end())
    raise Unreadable(f"{text[start : start + 20]!r} is not JSON")


def _string(text: str, start: int) -> Token:
    found: re.Match[str] | None
    rungs: tuple[str, ...]
    if text.startswith(('"""', "'''"), start):
        if (found := TRIPLE.match(text, start)) is None:
            raise Unreadable("three quotes in a row can be read in two ways")
        body = found.group(1) or found.group(2) or ""
        bare = body.strip()
        # The three may as well be an empty string and a quote too many, next to a mark of JSON.
        if "\\" in body or bare[:1] in MARKS or bare[-1:] in MARKS:
            raise Unreadable("a string of three quotes can be read in two ways")
        value, rungs = _whole(body), ("triple quotes",)
    elif text[start] == '"':
        found = _closed(DOUBLE.match(text, start))
        value, rungs = found.group(1), ("lone backslashes",)
        # Where no backslash of the whole text escapes anything, each stands for itself: they are
        # those of a regular expression that its writer forgot to escape.
        if LONE_BACKSLASH.search(value) and _only_lone(text):
            value = _whole(value)
        else:
            value, rungs = _json(value)
    elif text[start] == "'":  # Python and JSON5 read it alike
        found = _closed(SINGLE.match(text, start))
        value, rungs = _json(ESCAPE.sub(_as_json, found.group(1)))
        rungs = ("single quotes", *rungs)
    else:
        found = _closed(CURLY.match(text, start))
        value, rungs = found.group(1), ("typographic quotes",)
    return Token("string", value, start, found.end(), rungs)


def _closed(found: re.Match[str] | None) -> re.Match[str]:
    if found is None:
        raise CutOff("the arguments end inside a string")
    return found


# --- The grammar of JSON, JSON5 and Python's literals, as far as they agree.

DEEPEST: Final = 64
"""Levels of nesting: no tool's schema comes near, and Python's own stack is far."""
PYTHON: Final = {"True": True, "False": False, "None": None}
JSON: Final = {"true": True, "false": False, "null": None}


class Reader:
    """Reads one value, and keeps what its text was like: where it ends, what is open, rungs."""

    def __init__(self, text: str, start: int) -> None:
        self._tokens: Iterator[Token] = tokens(text, start)
        self._ahead: Token | None = None
        self.end = start
        self.unclosed = 0
        self.rungs: list[str] = []
        self._last_number = False
        self._text = text
        self._quotes = Quotes()
        self.spans: dict[tuple[int, str], slice] = {}

    def _peek(self) -> Token | None:
        if self._ahead is None:
            self._ahead = next(self._tokens, None)
        return self._ahead

    def _next(self) -> Token:
        token = self._peek()
        if token is None:
            raise CutOff("the arguments end before a value")
        self._ahead, self.end = None, token.end
        self._last_number = token.kind == "number"
        self.rungs.extend(token.rungs)
        if token.kind == "string":
            self._quotes.add(self._text[token.start], token.value)
        return token

    def value(self, depth: int) -> Any:
        """Read one value. Raises :class:`Unreadable`, and :class:`CutOff` where the text ends."""
        token = self._next()
        if token.kind in ("string", "number"):
            return token.value
        if token.kind == "word":
            return self._literal(token)
        if depth >= DEEPEST:
            raise Unreadable(f"the arguments are nested more than {DEEPEST} levels deep")
        if token.value == "{":
            return self._object(depth + 1)
        if token.value in "[(":
            return self._items("]" if token.value == "[" else ")", depth + 1)
        raise Unreadable(f"{token.value!r} stands where a value should")

    def _literal(self, token: Token) -> Any:
        if token.value in JSON:
            return JSON[token.value]
        if token.value in PYTHON:
            self.rungs.append("python literals")
            return PYTHON[token.value]
        if self._peek() is None:
            raise CutOff(f"the arguments end in {token.value!r:.40}")
        raise Unreadable(f"{token.value!r:.40} is neither a string nor a value of JSON")

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._closes("}", began=bool(found)):
            key = self._key()
            first = self._peek()
            value = self.value(depth)
            self.spans[id(found), key] = slice(first.start if first else 0, self.end)
            if key in found and not same(found[key], value):
                raise Unreadable(f"{key!r:.60} is given twice, with different values")
            found[key] = value
            if not self._goes_on("}"):
                break
        return found

    def _key(self) -> str:
        token = self._next()
        bare = token.kind == "word" and token.value not in {**JSON, **PYTHON}
        if token.kind != "string" and not bare:
            raise Unreadable(f"{token.value!r:.40} stands where a key should")
        if bare:
            self.rungs.append("unquoted keys")
        colon = self._next()
        if colon.value != ":" or colon.kind != "mark":
            raise Unreadable(f"there is no colon after {token.value!r:.60}")
        return str(token.value)

    def _items(self, closer: str, depth: int) -> list[Any]:
        found: list[Any] = []
        commas = 0
        while not self._closes(closer, began=bool(found)):
            found.append(self.value(depth))
            if not self._goes_on(closer):
                break
            commas += 1
        if closer == ")":
            self.rungs.append("python literals")
            if len(found) == 1 and not commas:
                raise Unreadable("a value in parentheses is neither a list nor a value of JSON")
        return found

    def _closes(self, closer: str, *, began: bool) -> bool:
        token = self._peek()
        if token is None or token.kind != "mark" or token.value != closer:
            return False
        self._next()
        if began:
            self.rungs.append("trailing comma")
        return True

    def _goes_on(self, closer: str) -> bool:
        token = self._peek()
        if token is None:
            if self._last_number:
                raise CutOff("the arguments end in a number")
            self.unclosed += 1
            return False
        self._next()
        if token.kind != "mark" or token.value not in (",", closer):
            raise Unreadable(f"{token.value!r:.40} stands where a comma or {closer} should")
        return bool(token.value == ",")


# --- A text read to the last character: nothing in it is guessed, and nothing left out.


@dataclass(frozen=True)
class Reading:
    """A value read: where its text ends, how many of its containers are open there, rungs used.

    ``spans`` tell where the value of an object's key stands, by the object's ``id`` and the key.
    """

    value: Any
    end: int
    unclosed: int = 0
    rungs: tuple[str, ...] = ()
    spans: Mapping[tuple[int, str], slice] = field(default_factory=dict)


def read_value(text: str, start: int = 0) -> Reading:
    """Read the value that begins at ``start``. Raises :class:`Unreadable` or :class:`CutOff`.

    Of a text that ends after a whole value, with containers open, the number of them is told.
    """
    reader = Reader(text, start)
    value = reader.value(0)
    rungs = tuple(dict.fromkeys(reader.rungs))
    return Reading(value, reader.end, reader.unclosed, rungs, reader.spans)
