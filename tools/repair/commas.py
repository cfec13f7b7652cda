"""Commas that were left out, put in by the JSON repair library and proved harmless."""

import json
from typing import Any, Final

from daruma.tools.repair.equality import same
from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.quotes import Quotes
from daruma.tools.repair.reader import DEEPEST
from daruma.tools.repair.reading import Reading, read_value
from daruma.tools.repair.tokens import Token, tokens

MOST_TOKENS: Final = 4_000
"""Tokens of a text that is tried: the library is slow, and long calls rarely lack one comma."""


def read_without_commas(text: str) -> Reading:
    """Read an object that lacks commas between entries. Raises :class:`Unreadable`.

    The library may do anything to a text; its answer is taken only if it has the very same
    strings, numbers, words, brackets and colons in the very same order.
    """
    from json_repair import repair_json  # rarely needed

    given = _known(text)
    value = repair_json(_as_json(given), return_objects=True)
    answer = json.dumps(value)
    _prove(given, list(tokens(answer)))
    read_value(answer)  # no key twice, nothing too deep
    rungs = [rung for token in given for rung in token.rungs]
    return Reading(value, len(text), 0, tuple(dict.fromkeys((*rungs, "missing comma"))))


def _known(text: str) -> list[Token]:
    found: list[Token] = []
    quotes = Quotes()
    depth = 0
    for token in tokens(text):
        if token.kind == "string":
            quotes.add(text[token.start], token.value)
        found.append(token)
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(_mark(token), 0)
        if len(found) > MOST_TOKENS or not 0 <= depth <= DEEPEST or _mark(token) in "()":
            raise Unreadable("the arguments are not JSON")
    return found


def _mark(token: Token) -> str:
    return str(token.value) if token.kind == "mark" else "-"


def _as_json(given: list[Token]) -> str:
    marks_and_words = ("mark", "word")
    return " ".join(
        str(token.value) if token.kind in marks_and_words else json.dumps(token.value)
        for token in given
    )


def _prove(given: list[Token], answer: list[Token]) -> None:
    at = 0
    for new in answer:
        old = given[at] if at < len(given) else None
        if old is not None and _one(old, new):
            at += 1
        elif _mark(new) != "," or not _begins_entry(given, at):
            raise Unreadable("the arguments are not JSON, and more than a comma is missing")
    if at != len(given):
        raise Unreadable("the arguments are not JSON, and more than a comma is missing")


def _begins_entry(given: list[Token], at: int) -> bool:
    """Whether a key stands here, apart from what is before it and followed by its colon."""
    if not 0 < at < len(given) - 1:
        return False
    apart = given[at - 1].end < given[at].start
    return apart and given[at].kind == "string" and _mark(given[at + 1]) == ":"


def _one(old: Token, new: Token) -> bool:
    value: Any = new.value
    return old.kind == new.kind and same(old.value, value)
