"""The grammar of JSON, JSON5 and Python's literals, as far as they agree."""

from collections.abc import Iterator
from typing import Any, Final

from daruma.tools.repair.equality import same
from daruma.tools.repair.outcome import CutOff, Unreadable
from daruma.tools.repair.quotes import Quotes
from daruma.tools.repair.tokens import Token, tokens

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
            value = self.value(depth)
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
