"""The readings that a broken text of arguments can have: every character accounted for (TL-10)."""

import json
import re
from typing import Any, Final

from daruma.tools.calls._json_reader import (
    DEEPEST,
    CutOff,
    Quotes,
    Reading,
    Token,
    Unreadable,
    read_value,
    same,
    tokens,
)

# --- A text with one closing bracket too many: any of them may be the one.

MOST_CLOSERS: Final = 64
"""Closing brackets of a text of which one is too many: each may be the one."""


def one_closer_less(text: str) -> list[Reading]:
    """Return the readings of a text with a bracket too many: any one may be it."""
    places = [t.start for t in tokens(text) if t.kind == "mark" and t.value in ("}", "]")]
    found: list[Reading] = []
    for place in places if len(places) <= MOST_CLOSERS else ():
        shorter = text[:place] + text[place + 1 :]
        try:
            reading = read_value(shorter)
        except Unreadable:
            continue
        if not reading.unclosed and not shorter[reading.end :].strip():
            found.append(reading)
    if not found:
        raise Unreadable("there is a closing bracket too many")
    return found


# --- Commas that were left out, put in by the JSON repair library and proved harmless.

MOST_TOKENS: Final = 4_000
"""Tokens of a text that is tried: the library is slow, and long calls rarely lack one comma."""


def read_without_commas(text: str) -> Reading:
    """Read an object that lacks commas between entries. Raises :class:`Unreadable`.

    The library may do anything to a text; its answer is taken only if it has the very same
    strings, numbers, words, brackets and colons in the very same order, and commas only before a
    key that stands apart from what is before it.
    """
    from json_repair import repair_json  # rarely needed

    given = _known(text)
    texts = (t.value if t.kind in ("mark", "word") else json.dumps(t.value) for t in given)
    written = " ".join(map(str, texts))
    value = repair_json(written, return_objects=True)
    answer, at = json.dumps(value), 0
    for new in tokens(answer):
        old = given[at] if at < len(given) else None
        if old is not None and old.kind == new.kind and same(old.value, new.value):
            at += 1
            continue
        key = 0 < at < len(given) - 1 and given[at].kind == "string"
        apart = key and given[at - 1].end < given[at].start and _mark(given[at + 1]) == ":"
        if _mark(new) != "," or not apart:
            raise Unreadable("the arguments are not JSON, and more than a comma is missing")
    if at != len(given):
        raise Unreadable("the arguments are not JSON, and more than a comma is missing")
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


# --- What may stand around the arguments without doubt: fences, end marks, plain words.

FENCE: Final = re.compile(r"```[A-Za-z_-]*[ \t]*\n?")
END_MARKS: Final = re.compile(r"(?:</?tool_call>|<\|[a-z_]{1,30}\|>|</s>|\s)+\Z")
PROSE: Final = re.compile(r"(?:[^\W\d_]|[\s.,:;!’'—–-])*+")
WORDS: Final = re.compile(r"[^\W\d]+")
LONGEST: Final = 2_000
"""Characters of prose on either side; more is an essay that shows an object."""


def strip_fence(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text without the fence around all of it and the marks at its end."""
    rungs: list[str] = []
    text = text.strip().removeprefix("\ufeff").strip()
    shorter = END_MARKS.sub("", text[-200:])
    if len(shorter) < len(text[-200:]):
        text = text[: len(text) - len(text[-200:])] + shorter
        rungs.append("end marks")
    if opening := FENCE.match(text):
        text = text[opening.end() :].removesuffix("```").strip()
        rungs.append("code fence")
    return text, tuple(rungs)


def check_prose(before: str, after: str, names: frozenset[str]) -> None:
    """Raise :class:`Unreadable` unless plain words alone stand around an object.

    Neither digit nor quote nor bracket may be among them, nor a property's name: a value might be
    meant by it.
    """
    if len(before) > LONGEST or len(after) > LONGEST:
        raise Unreadable("the arguments stand in too long a text")
    before, after = re.sub(r"```[A-Za-z_-]*\s*\Z", "", before), re.sub(r"\A\s*```", "", after)
    for prose in (before, after):
        if PROSE.fullmatch(prose) is None or names & set(WORDS.findall(prose.lower())):
            raise Unreadable("what stands around the arguments may belong to them")


# --- The readings that a text of arguments can have: most have one, a bracket too many gives more.

ENCODINGS: Final = 2
"""How often an object may be written as a string: once by habit, once more by a server."""
ONLY_QUOTES_ESCAPED: Final = re.compile(r'[^\\"]*(?:\\"[^\\"]*)*')
"""A string without its own quotes; with other escapes it would have two readings."""
MOST_REPEATED: Final = 8
"""How often one and the same object may stand there."""


def json_readings(text: str, names: frozenset[str], *, encodings: int = ENCODINGS) -> list[Reading]:
    """Return every reading of a text. Raises :class:`Unreadable` or :class:`CutOff` for none.

    ``names`` are the properties, in lower case: none of them may stand in words around.
    """
    text, rungs = strip_fence(text)
    if not text and rungs:
        raise CutOff("the arguments end before their first bracket")
    if text in ("", "null", "None"):
        return [Reading({}, len(text), 0, (*rungs, "empty text"))]
    if text.startswith('{\\"') and ONLY_QUOTES_ESCAPED.fullmatch(text):
        text = f'"{text}"'
    if text[0] in "\"'":
        reading = read_value(text)
        if text[reading.end :].strip():
            raise Unreadable("a string is followed by more")
        if "single quotes" in reading.rungs and "\\" in text:
            raise Unreadable("a backslash in single quotes can be read in two ways")
        if not encodings or not isinstance(reading.value, str) or not reading.value.strip():
            raise Unreadable("a JSON object is wanted")
        found = json_readings(reading.value, names, encodings=encodings - 1)
        rungs = (*rungs, "doubled encoding")
    else:
        found = _objects(text, names)
    return [_with(rungs, each) for each in found]


def read_object(text: str) -> dict[str, Any] | None:
    """Return the one object that a text certainly is, to its end; None for anything else."""
    try:
        found = json_readings(text, frozenset())
    except Unreadable:
        return None
    value = found[0].value
    return value if len(found) == 1 and not found[0].unclosed and isinstance(value, dict) else None


def _with(rungs: tuple[str, ...], reading: Reading) -> Reading:
    rungs = tuple(dict.fromkeys((*rungs, *reading.rungs)))
    return Reading(reading.value, reading.end, reading.unclosed, rungs)


def _objects(text: str, names: frozenset[str]) -> list[Reading]:
    start = 0 if text[0] == "[" else text.find("{")
    if start < 0:
        raise Unreadable("a JSON object is wanted")
    first = _first(text, start)
    rest = text[first.end :].strip()
    if first.unclosed:
        if start or rest:
            raise CutOff("the arguments end inside of something else")
        return [_lone(first)]
    if not start and rest in ("}", "]"):
        return [_with(("extra closing bracket",), _lone(each)) for each in one_closer_less(text)]
    end = first.end
    for _ in range(MOST_REPEATED):
        if text[end:].lstrip()[:1] not in ("{", "["):
            break
        again = read_value(text, end)
        if again.unclosed or not same(again.value, first.value):
            raise Unreadable("there are two different objects")
        first, end = _with(("repeated object",), first), again.end
    check_prose(text[:start], text[end:], names)
    return [_with(("surrounding text",) if start or text[end:].strip() else (), _lone(first))]


def _first(text: str, start: int) -> Reading:
    try:
        return read_value(text, start)
    except CutOff:
        raise
    except Unreadable as error:
        if start:
            raise
        try:
            return read_without_commas(text)
        except Unreadable:
            raise error from None


def _lone(reading: Reading) -> Reading:
    """Return an object out of the list of one around it."""
    value: Any = reading.value
    if isinstance(value, list) and len(value) == 1 and not reading.unclosed:
        value = value[0]
        reading = Reading(value, reading.end, 0, ("list around the object", *reading.rungs))
    if not isinstance(value, dict):
        raise Unreadable("a JSON object is wanted")
    return reading
