"""Repair where it is certain: of JSON in loose text, and of arguments by rules. Pure."""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from daruma.tools.calls._json_reader import (
    DEEPEST,
    DIGITS,
    CutOff,
    Quotes,
    Reading,
    Refused,
    Repaired,
    Token,
    Unreadable,
    read_value,
    same,
    tokens,
)
from daruma.tools.calls._notations import ARGUMENTS, NAMES, OWN
from daruma.tools.calls._schema import (
    Schema,
    fixed_values,
    misfit,
    properties,
    same_word,
    takes_any_key,
    type_of,
    types,
    variants,
)
from daruma.tools.calls._tool import Tool

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


# --- Whether a text that ends early can have lost anything but its closing brackets.


def lost_nothing(value: Any, unclosed: int, schema: Schema) -> bool:
    """Whether all that could have stood in the containers open at the end is there.

    That holds where each of them is an object with every property of its schema given, and no
    other key possible. A list could always have gone on. The bracket that lacks may be that of an
    object within, closed by the bracket of the one around it: that one has to be as full.
    """
    at: Any = schema
    node = value
    while isinstance(node, dict) and node:
        key, last = next(reversed(node.items()))
        objects = [each for each in variants(at, schema) if properties(each)]
        lone = len(objects) == 1 and not takes_any_key(objects[0])
        known = properties(objects[0]) if lone else None
        holds = unclosed > 0 or (isinstance(last, dict) and last)
        if holds and (known is None or node.keys() != known.keys()):
            return False
        unclosed, node, at = unclosed - 1, last, (known or {}).get(key)
    return unclosed <= 0 and misfit(value, schema, schema) is None


# --- One value as another JSON type, where nothing of it is lost.
#
# What is not here is left out on purpose: an integer for a text (the zeros before it may be gone
# already), a decimal for a text (1.10 came as 1.1), 1 for true, a text with separators for a list.

Converted = tuple[Any, str]

INTEGER: Final = re.compile(r"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
SEPARATOR: Final = re.compile(r"[\s,;|]")
BOOLEANS: Final = {"true": True, "True": True, "false": False, "False": False}
EXACT: Final = 2**53
"""Up to here every whole float is the number that was written."""


def _integer(value: Any) -> Converted | None:
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value), "whole number"
    if isinstance(value, str) and len(value) <= DIGITS and (found := INTEGER.fullmatch(value)):
        return int(found.group(1)), "number from text"
    return None


def _number(value: Any) -> Converted | None:
    if not isinstance(value, str) or len(value) > DIGITS or NUMBER.fullmatch(value) is None:
        return None
    number = json.loads(value)
    if isinstance(number, float) and (
        not math.isfinite(number) or Decimal(repr(number)) != Decimal(value)
    ):
        return None
    return number, "number from text"


def _array_from_text(value: Any) -> Converted | None:
    if value is None:
        return None
    if not isinstance(value, str):
        return [value], "lone value to list"
    if value.lstrip().startswith(("[", "{", "(", '"')):
        return _decoded(value, list, "array from text")
    return None if SEPARATOR.search(value) else ([value], "lone value to list")


def _decoded(text: str, wanted: type, rung: str) -> Converted | None:
    try:
        reading = read_value(text)
    except Unreadable:
        return None
    whole = not reading.unclosed and not text[reading.end :].strip()
    return (reading.value, rung) if whole and isinstance(reading.value, wanted) else None


CONVERSIONS: Final[dict[str, Callable[[Any], Converted | None]]] = {
    "integer": _integer,
    "number": _number,
    "boolean": lambda value: (
        (BOOLEANS[value], "boolean from text")
        if isinstance(value, str) and value in BOOLEANS
        else None
    ),
    "null": lambda value: (None, "null from text") if value in ("null", "None") else None,
    "array": _array_from_text,
    "object": lambda value: (
        _decoded(value, dict, "object from text") if isinstance(value, str) else None
    ),
}
"""From a value to one of the type named, with the rung's name; None where it would be a guess."""


# --- Keys of an object that are spelled in another way than its schema has them.


def spelling(value: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, str]:
    """Return the known key for each unknown one, where there is exactly one and no rival."""
    free: dict[str, list[str]] = {}
    for key in known:
        if key not in value:
            free.setdefault(same_word(key), []).append(key)
    meant: dict[str, list[str]] = {}
    for key in value:
        if key not in known:
            meant.setdefault(same_word(key), []).append(key)
    alone = ((word, keys[0]) for word, keys in meant.items() if len(keys) == 1)
    return {key: free[word][0] for word, key in alone if len(free.get(word, ())) == 1}


# --- A value made to fit a JSON schema by steps that lose nothing, or not at all.

SCALARS: Final = frozenset({"string", "integer", "boolean", "null"})


@dataclass(frozen=True)
class Fitted:
    """A value that fits, and the rungs it took; with none it is the value that was given."""

    value: Any
    rungs: tuple[str, ...] = ()


def fit_value(value: Any, schema: Any, root: Schema) -> Fitted:
    """Return the only value that fits. Raises :class:`Unreadable` for none or for several."""
    choices = variants(schema, root)
    if not choices:
        return Fitted(value)
    found: list[Fitted] = []
    for choice in choices:
        for candidate in _of_type(value, choice, choices):
            with suppress(Unreadable):
                grown = _inside(candidate, choice, root)
                found += [grown] if misfit(grown.value, choice, root) is None else []
    found = [each for each in found if not each.rungs] or found
    if not found:
        raise Unreadable("it does not fit")
    if any(not same(each.value, found[0].value) for each in found[1:]):
        raise Unreadable("it can be made to fit in more than one way")
    return found[0]


def _of_type(value: Any, choice: Schema, choices: list[Schema]) -> Iterator[Fitted]:
    """Yield the value itself, or if no variant takes its type, its conversions for this one."""
    if any(_takes_type(value, each) for each in choices):
        yield Fitted(value)
        fixed = fixed_values(choice)
        if isinstance(value, str) and value not in fixed:  # in another case, or otherwise separated
            texts = (each for each in fixed if isinstance(each, str))
            alike = [each for each in texts if same_word(each) == same_word(value)]
            yield from [Fitted(each, ("value spelling",)) for each in alike if len(alike) == 1]
        return
    for name in sorted(types(choice) & CONVERSIONS.keys()):
        if (converted := CONVERSIONS[name](value)) is not None:
            yield Fitted(converted[0], (converted[1],))


def _takes_type(value: Any, choice: Schema) -> bool:
    taken = types(choice)
    of = type_of(value)
    return not taken or of in taken or (of == "integer" and "number" in taken)


def _inside(given: Fitted, choice: Schema, root: Schema) -> Fitted:
    if isinstance(given.value, dict):
        grown = _fit_object(given.value, choice, root)
    elif isinstance(given.value, list):
        grown = _fit_array(given.value, choice, root)
    else:
        return given
    return Fitted(grown.value, (*given.rungs, *grown.rungs))


def _fit_array(value: list[Any], choice: Schema, root: Schema) -> Fitted:
    if {type_of(each) for each in value} <= SCALARS and misfit(value, choice, root) is None:
        return Fitted(value)
    first = choice.get("prefixItems") or ()
    rest = choice.get("items", {})
    schemas = [*first[: len(value)], *([rest] * (len(value) - len(first)))]
    items = [fit_value(each, schema, root) for each, schema in zip(value, schemas, strict=True)]
    rungs = dict.fromkeys(rung for each in items for rung in each.rungs)
    return Fitted([each.value for each in items], tuple(rungs))


def _fit_object(value: Mapping[str, Any], choice: Schema, root: Schema) -> Fitted:
    known = properties(choice)
    spelled = {} if takes_any_key(choice) else spelling(value, known)
    others = choice.get("additionalProperties", {})
    entries: dict[str, Any] = {}
    rungs: list[str] = ["key spelling"] if spelled else []
    for given, each in value.items():
        key = spelled.get(given, given)
        optional = each is None and key in known and key not in (choice.get("required") or ())
        if optional and not any(_takes_type(None, form) for form in variants(known[key], root)):
            rungs.append("null left out")  # it can only mean that the property is not given
            continue
        grown = fit_value(each, known.get(key, others), root)
        entries[key] = grown.value
        rungs.extend(grown.rungs)
    return Fitted(entries, tuple(dict.fromkeys(rungs)))


# --- A call inside the arguments of a call: its own arguments are what was meant.


def unwrap_call(args: Mapping[str, Any], tool: Tool) -> dict[str, Any] | None:
    """Return the arguments inside, None where there is no wrapper that the schema rules out.

    Raises :class:`Unreadable` where the call inside names another tool.
    """
    inside = [key for key in args if key in ARGUMENTS]
    names = [key for key in args if key in NAMES]
    known = properties(tool.parameters)
    rest = args.keys() - {*ARGUMENTS, *NAMES} - OWN
    free = not known and tool.parameters.get("additionalProperties") is not False
    if free or takes_any_key(tool.parameters) or rest or known.keys() & args.keys():
        return None
    if len(inside) != 1 or len(names) > 1:
        return None
    name = args[names[0]] if names else tool.name
    if not isinstance(name, str) or same_word(name) != same_word(tool.name):
        raise Unreadable(f"the arguments hold a call of another tool, {name!r:.60}")
    value = args[inside[0]]
    decoded = CONVERSIONS["object"](value)
    found = decoded[0] if decoded else value
    return found if isinstance(found, dict) else None


# --- The rules rung (TL-10): what a call's arguments certainly meant, without asking anyone.

NOT_AN_OBJECT: Final = "not an object: "
NOTHING: Final = "nothing"
"""How the model client hands on arguments that are JSON and no object, and no text at all."""

AGAIN: Final = "give the call again, with less in it"


def repair_text(raw: str, tool: Tool, *, max_bytes: int) -> Repaired | Refused:
    """Return what a text of arguments certainly means, or why that can not be said.

    Every rung is exact: each character of the text is accounted for, and the result fits the
    tool's schema. A text that ends early is closed only where nothing but brackets of objects can
    be missing; for a tool with effects nothing else may be wrong with it.
    """
    if len(raw.encode(errors="replace")) > max_bytes:
        return Refused("too_large", f"the arguments are larger than {max_bytes} bytes: {AGAIN}")
    text = raw.strip().removeprefix(NOT_AN_OBJECT)
    names = frozenset(key.lower() for key in properties(tool.parameters))
    try:
        readings = json_readings("" if text == NOTHING else text, names)
        found = [_fit(reading, tool) for reading in readings]
        fits = [each for each in found if isinstance(each, Repaired)]
        if any(not same(each.args, fits[0].args) for each in fits[1:]):
            raise Unreadable("they can be read in more than one way")
        return fits[0] if fits else found[0]
    except CutOff as error:
        return Refused("cut_off", f"{error}: the call was cut off: {AGAIN}")
    except Unreadable as error:
        return Refused("invalid_json", f"the arguments are not valid JSON: {error}")


MOST_OBJECTS: Final = 50
MOST_PROSE: Final = 200_000
"""Objects of an answer that are looked at, and characters that are read in vain for it (SE-07)."""


def read_structured(text: str, asked: Tool, *, max_bytes: int) -> dict[str, Any] | str:
    """Return the value that an answer gives for a schema, or what is wrong with it (FA-10).

    The text is read as arguments are. What can not be is taken for words with objects in them, of
    which one alone may fit.
    """
    if "{" not in text:
        return "there is no JSON object in it"
    whole = repair_text(text, asked, max_bytes=max_bytes)
    if isinstance(whole, Repaired):
        return whole.args
    try:
        found = [] if whole.problem == "too_large" else [*_objects_in(text, asked)]
    except Unreadable as error:
        return str(error)
    fits = [each.args for each in found if isinstance(each, Repaired)]
    if not fits:
        wrong = [each for each in found if isinstance(each, Refused)]
        reason = (wrong[0] if len(wrong) == 1 else whole).reason
        return reason.partition(": the call was")[0].replace("the arguments", "its values")
    if any(not same(each, fits[0]) for each in fits[1:]):
        return "more than one object in it fits"
    return fits[0]


def _objects_in(text: str, asked: Tool) -> Iterator[Repaired | Refused]:
    at, left, seen = text.find("{"), MOST_PROSE, 0
    while at >= 0:
        if left <= 0 or seen >= MOST_OBJECTS:
            raise Unreadable("there is too much in it beside one object")
        try:
            reading = read_value(text, at)
            yield _fit(reading, asked)
            at, seen = text.find("{", reading.end), seen + 1
        except Unreadable:
            left -= len(text) - at
            at = text.find("{", at + 1)


def repair_args(args: Mapping[str, Any], tool: Tool) -> Repaired | Refused:
    """Return arguments that fit the tool's schema by steps that lose nothing, or why none do.

    The steps are those of the parts above, each with a name; no key is dropped, but for a null that
    an optional property does not take.
    """
    if _too_deep(args):
        return Refused("invalid_args", f"$: nested more than {DEEPEST} levels deep")
    try:
        inner = unwrap_call(args, tool)
    except Unreadable as error:
        return Refused("invalid_args", f"$: {error}")
    if inner is not None and isinstance(found := _fitting(inner, tool), Repaired):
        return Repaired(found.args, ("wrapper", *found.rungs))
    return _fitting(dict(args), tool)


def _fitting(args: dict[str, Any], tool: Tool) -> Repaired | Refused:
    schema = tool.parameters
    try:
        grown = fit_value(args, schema, schema)
    except Unreadable as error:
        return Refused("invalid_args", misfit(args, schema, schema) or f"$: {error}")
    problem = misfit(grown.value, schema, schema)
    return Refused("invalid_args", problem) if problem else Repaired(grown.value, grown.rungs)


def _fit(reading: Reading, tool: Tool) -> Repaired | Refused:
    if reading.unclosed:
        if "comments" in reading.rungs or (tool.effect != "none" and reading.rungs):
            raise CutOff("the arguments end before their closing bracket")
        if not lost_nothing(reading.value, reading.unclosed, tool.parameters):
            raise CutOff("the arguments end where more could follow")
        return Repaired(reading.value, (*reading.rungs, "missing closing brackets"))
    found = repair_args(reading.value, tool)
    if isinstance(found, Refused):
        return found
    schema = tool.parameters
    strange = found.args.keys() - properties(schema).keys()
    if reading.rungs and strange and properties(schema) and not takes_any_key(schema):
        return Refused("invalid_args", f"$: {min(strange)!r:.60} is not an argument of {tool.name}")
    return Repaired(found.args, (*reading.rungs, *found.rungs))


def _too_deep(args: Mapping[str, Any]) -> bool:
    level: list[Any] = [args]
    for _ in range(DEEPEST):
        below = [list(each.values() if isinstance(each, Mapping) else each) for each in level]
        level = [each for items in below for each in items if isinstance(each, (Mapping, list))]
        if not level:
            return False
    return True
