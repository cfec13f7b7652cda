"""The guard behind the model rung: it may mend structure, names and types, and invent nothing."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from daruma.tools.calls._notations import ARGUMENTS, NAMES, OWN
from daruma.tools.calls._schema import fixed_values, properties, same_word, variants
from daruma.tools.calls._tool import Tool

# --- What proper JSON says needs no guess: its texts are known, in one spelling each.


def said_texts(raw: str) -> frozenset[str] | None:
    """Return the texts of proper JSON, also of JSON that was quoted whole; None of a broken one."""
    try:
        value = json.loads(raw)
        return said_texts(value) if isinstance(value, str) else frozenset(_texts(value))
    except (ValueError, RecursionError):
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


# --- Where a value stands in a broken text, in whichever spelling JSON or Python has for it.

QUOTES: Final = "\"'`"
EMPTY: Final = re.compile(r"(?<![\"'`])(?:\"\"|''|\\\"\\\")(?![\"'`])")
"""Quotes with nothing between them; within others they are a text of their own."""
EMPTY_OBJECT: Final = re.compile(r"\{\s*\}")
EMPTY_LIST: Final = re.compile(r"\[\s*\]")

Span = tuple[int, int]


def find_value(raw: str, leaf: Any, at: int, fixed: frozenset[str]) -> Span | None:
    """Return where a value stands next, whole; ``fixed`` texts may stand in another case."""
    if isinstance(leaf, str) and leaf:
        return _find_text(raw, leaf, at, any_case=leaf in fixed)
    if leaf == "" or isinstance(leaf, (dict, list)):
        empty = EMPTY if leaf == "" else EMPTY_OBJECT if isinstance(leaf, dict) else EMPTY_LIST
        found = empty.search(raw, at)
    else:
        word = rf"(?<![\w.+-]){re.escape(json.dumps(leaf))}(?![\w.+-])"
        flags = re.IGNORECASE if isinstance(leaf, bool) else re.NOFLAG
        found = re.compile(word, flags).search(raw, at)
    return found.span() if found else None


def spellings(text: str) -> list[str]:
    """Return how a text may be written: escaped, half escaped, escaped twice, or as it is."""
    whole = json.dumps(text, ensure_ascii=False)[1:-1]
    ascii_only = json.dumps(text)[1:-1]
    quotes = whole.replace('\\"', '"')
    breaks = whole.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
    once_more = (json.dumps(each, ensure_ascii=False)[1:-1] for each in (whole, ascii_only))
    single = quotes.replace("'", "\\'")
    forms = (text, whole, ascii_only, quotes, breaks, single, repr(text)[1:-1], *once_more)
    return list(dict.fromkeys(forms))


def _find_text(raw: str, text: str, at: int, *, any_case: bool) -> Span | None:
    """Return the first place, there the longest, that is quoted on both sides."""
    raw, text = (raw.lower(), text.lower()) if any_case else (raw, text)
    places = []
    for form in spellings(text):
        start = raw.find(form, at)
        while start >= 0 and not _quoted(raw, start, start + len(form)):
            start = raw.find(form, start + 1)
        if start >= 0:
            places.append((start, start + len(form)))
    return min(places, key=lambda span: (span[0], -span[1]), default=None)


def _quoted(raw: str, start: int, end: int) -> bool:
    behind = raw[end : end + 2].removeprefix("\\")  # two backslashes are one of the text's own
    return raw[start - 1 : start] in QUOTES and start > 0 and behind[:1] in QUOTES and behind != ""


# --- The guard behind the model rung: it may mend structure, names and types, and invent nothing.

LONG: Final = 40
"""Characters from which a text is a payload for tools without effects too."""
KEY: Final = re.compile(r"[\"'\\]{0,4}([A-Za-z_$][\w$-]{0,200}+)[\"'\\]{0,4}\s{0,9}[:=]")
NOT_GIVEN: Final = re.compile(rf"{KEY.pattern}\s{{0,9}}(?:null|None)\b")
PUNCTUATION: Final = re.compile(r"(?:null|None|[\s{}\[\](),;\\])*")
FENCE: Final = re.compile(r"\A\s*```[a-z]*\s*|(?<!\s)\s*+```\s*\Z")
WRAPPER: Final = frozenset(map(same_word, (*ARGUMENTS, *NAMES, *OWN)))

Path = tuple[str, ...]


def keeps_payload(raw: str, args: Mapping[str, Any], tool: Tool) -> bool:
    """Whether repaired arguments say what the raw text says, no more, no less.

    A tool without effects can do no harm: of its arguments only each text of ``LONG`` characters
    or more must stand in the raw text. For any other tool the raw text must be the values of
    ``args``, in their order, and between them only punctuation and keys, no value under another
    known key than its own. So nothing is added, shortened, swapped or left out. Texts count as
    equal in every spelling that JSON and Python have for them; fixed values also in other case.
    A raw text that is proper JSON has one reading, and a backslash more or less is another text.
    """
    leaves = list(_leaves(args, ()))
    if tool.effect == "none":
        texts = [each for _, each in leaves if isinstance(each, str) and len(each) >= LONG]
        return all(any(form in raw for form in spellings(each)) for each in texts)
    text = FENCE.sub("", raw).strip()
    return _said(text, leaves, tool) and _aligned(text, leaves, tool)


def _said(raw: str, leaves: list[tuple[Path, Any]], tool: Tool) -> bool:
    """Whether proper JSON says each text as it is; of a broken one nothing is known yet."""
    said = said_texts(raw)
    if said is None:
        return True
    fixed = _fixed(tool)
    in_lower_case = {each.lower() for each in said}
    texts = [leaf for _, leaf in leaves if isinstance(leaf, str)]
    return all(t in said or (t in fixed and t.lower() in in_lower_case) for t in texts)


def _aligned(raw: str, leaves: list[tuple[Path, Any]], tool: Tool) -> bool:
    fixed = _fixed(tool)
    known = frozenset(map(same_word, properties(tool.parameters)))
    at = 0
    before: Path = ()
    for path, leaf in leaves:
        found = find_value(raw, leaf, at, fixed)
        if found is None:
            return False
        gap = NOT_GIVEN.sub(" ", raw[at : found[0]].replace(f'"{tool.name}"', " "))
        if not _keys_fit(gap, path, before, known) or not _is_gap(gap, first=not at):
            return False
        at, before = found[1], path
    gap = NOT_GIVEN.sub(" ", raw[at:])
    return not KEY.search(gap) and _is_gap(gap.removesuffix('"') if gap[1:] else gap, first=False)


def _keys_fit(gap: str, path: Path, before: Path, known: frozenset[str]) -> bool:
    """Whether a value stands under its own key, or under one unknown key that was renamed."""
    keys = {same_word(found) for found in KEY.findall(gap)}
    own = {same_word(each) for each in path}
    unknown = keys - known - own - WRAPPER
    if (keys & known) - own:
        return False
    if path == before:
        return not keys
    return len(unknown) <= (0 if own & keys else 1)


def _is_gap(gap: str, *, first: bool) -> bool:
    """Whether nothing but keys and punctuation is here, and no quote but those of its neighbours.

    A quote more would be the beginning of something that was left out.
    """
    rest = KEY.sub(" ", gap).strip()
    rest = rest.lstrip("\\")
    rest = rest[1:] if rest[:1] in ('"', "'") else rest
    rest = rest[:-1] if rest[-1:] in ('"', "'") else rest
    rest = rest.rstrip("\\").removeprefix('"') if first else rest.rstrip("\\")
    return PUNCTUATION.fullmatch(rest) is not None


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _leaves(each, (*path, str(key)))
    elif isinstance(value, list) and value:
        for each in value:
            yield from _leaves(each, path)
    elif value is not None:
        yield path, value


def _fixed(tool: Tool) -> frozenset[str]:
    found = [
        each
        for schema in properties(tool.parameters).values()
        for variant in variants(schema, tool.parameters)
        for each in fixed_values(variant)
    ]
    return frozenset(each for each in found if isinstance(each, str))
