"""The calls in an answer's text: where they stand, and whether its words make or show them (TL-18).

A text is blocks with words around them: what stands in a fence, behind a mark such as
``<tool_call>``, or bare. What begins as calls and can not be read to its end is in doubt, and with
it all calls of its text. Pure.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from html import unescape
from itertools import islice
from typing import Final, Literal, NamedTuple

from daruma.tools.calls._json_reader import CutOff, Unreadable, read_value
from daruma.tools.calls._notations import (
    AGAIN,
    ARGUMENTS,
    AROUND,
    BETWEEN,
    CLOSED_BY,
    CLOSING,
    IDENTIFIER,
    INNER,
    MARK,
    MOST_CALLS,
    NAME_FORM,
    NAMES,
    NOT_READ,
    OPENING,
    OWN,
    PYTHON,
    PYTHON_LIST,
    WHOLES,
    Shown,
    WrittenCall,
    read_calls,
    skip,
)

# --- Blocks of a text that are calls, or begin as calls.

MOST_PLACES: Final = 128
"""Marks and fences of a text that are looked at."""
CALL_FENCES: Final = frozenset({"tool", "tool_call", "tool_calls", "tool_code", "tool_use"})
DATA_FENCES: Final = frozenset({"", "json", "json5", "jsonl", "python", "py", "xml"})
BEGUN: Final = (
    rf"""["']?(?:{"|".join(NAMES)})["']?\s*:\s*["']({NAME_FORM})["']\s*,\s*"""
    rf"""["']?(?:{"|".join(ARGUMENTS)})["']?\s*:\s*"""
)
HEAD: Final = re.compile(
    rf"""([\s\[{{]*+(?:["']?(?:{"|".join((*WHOLES, *INNER))})["']?\s*:[\s\[{{]*+)*+){BEGUN}"""
)
"""How a call begins as an object, up to its arguments."""
NAMED: Final = re.compile(
    rf"""(?:["']|\b)(?:{"|".join(NAMES)})(?:\\*["']\s*:?|\s*:)\s*\\*["']?(?=({NAME_FORM}))"""
)
GIVEN: Final = re.compile(rf"""\b(?:(description)|{"|".join(ARGUMENTS)})(?:\\*["']|\s*:)|\Z""")


class Block(NamedTuple):
    """A part of a text with its calls.

    They are ``loose`` if words follow without a mark between, or if marks stand in a plain fence.
    """

    start: int
    end: int
    calls: list[WrittenCall]
    marked: bool = False
    loose: bool = False


PLACE: Final = re.compile(
    r"^[ \t]*(?:Action:?\s*)?`{3,9}(?P<fence>[\w+-]*)(?:[ \t]+\w+=[^\n`]*)?[ \t]*\n"
    rf"|{MARK.pattern}",
    re.MULTILINE | re.IGNORECASE,
)
FENCE_END: Final = re.compile(r"^[ \t]*`{3,9}[ \t]*$|\Z", re.MULTILINE)
DATA: Final = re.compile(r"""\s*(?:\{|\[[\s\[]*["'{\]])""")
_KEYS: Final = "|".join((*NAMES, *WHOLES, *INNER, *sorted(OWN | AROUND)))
LINE: Final = re.compile(
    rf"""^[ \t]*(?:(?=(?:[\[{{][\s\[{{]{{0,40}}+["']?|["'])(?:{_KEYS})\b)"""
    rf"|(?=(?:\[\s*)?(?P<name>{IDENTIFIER})(?:[({{]|\Z)))",
    re.MULTILINE,
)
NAME_AND_OBJECT: Final = re.compile(rf"\[\s*{IDENTIFIER}\s*\{{")
FIRST: Final = re.compile(
    rf"""\s*(?:<(?:invoke|function)[^=<>]{{0,20}}=["'\s]{{0,9}})?({NAME_FORM})(?=[\s<>{{(\["'`]|\Z)"""
)
GOES_ON: Final = re.compile(r"[\[\]{}\"',]")
"""What stands behind calls that go on in another way."""
TOKEN: Final = re.compile("<｜")
"""How marks of DeepSeek begin: nobody writes that in an answer."""
LAST_MARK: Final = re.compile(rf"(?:{CLOSED_BY})\Z", re.IGNORECASE)
OPENED: Final = re.compile(
    rf"(?:{OPENING}|<\|(?:channel|start)\|>|to=|Action:?|functools)\s*\Z", re.IGNORECASE
)
CUT: Final = re.compile(r"(?:<[^\s>]{0,40}|\[[A-Z_]{0,12}|`{1,2})\Z")
"""A mark that was opened, and nothing or half a mark behind it."""
DEFINED: Final = re.compile(
    r"^[ \t]*(?:def|class|import|from|for|while|if|with|return)\b", re.MULTILINE
)
BEGINNINGS: Final = tuple(
    f"{opening}{key}:"
    for key in ("name", "tool_calls:[{name", "type:function,function:{name", "function:{name")
    for opening in ("{", "[{")
)


def _blocks(text: str, shown: Shown) -> list[Block]:
    bare = None if PLACE.match(text) else _bare(text, 0, shown)
    if bare or (DATA.match(text) and not PLACE.match(text)):
        return [bare] if bare else []  # a mark in the middle of data is data
    found: list[Block] = []
    at = looked = 0
    while (place := PLACE.search(text, at)) and (looked := looked + 1) <= MOST_PLACES:
        block = _block(text, place, shown)
        found += [block] if block.calls else []
        at = max(block.end, at + 1)
    # Calls may stand bare at a text's end, from the beginning of a line on.
    line = None if found else next(filter(shown.allows, LINE.finditer(text, at)), None)
    bare = _bare(text, line.end(), shown) if line else None
    return [bare] if bare else found


def _bare(text: str, at: int, shown: Shown) -> Block | None:
    part = text[at:]
    try:
        calls, last, behind = read_calls(text, at, shown)
    except Unreadable as error:
        shaped = _is_shaped(part, error, shown)
        return Block(at, len(text), _broken(part, error, shown)) if shaped else None
    if calls and (why := _goes_on(text, last, behind, fenced=False)):
        return Block(at, len(text), _broken(part, why, shown))
    return Block(at, behind, calls) if calls else None


def _block(text: str, place: re.Match[str], shown: Shown) -> Block:
    """Return what stands in a fence or behind a mark, from where it is opened."""
    kind = place["fence"].lower() if place["fence"] is not None else None
    marked = kind is None or kind in CALL_FENCES
    start, at = place.span()
    at = skip(BETWEEN, text, at) if kind is None else at
    stop = (CLOSING if kind is None else FENCE_END).search(text, at)
    end = stop.end() if stop else len(text)
    part = text[at : stop.start() if stop else end]
    if not marked and (kind not in DATA_FENCES or DEFINED.search(part)):
        return Block(start, end, [])
    why: Unreadable | None = None
    calls: list[WrittenCall] = []
    try:
        calls, last, behind = read_calls(text, at, shown._replace(marked=marked))
        if calls and (why := _goes_on(text, last, behind, fenced=kind is not None)) is None:
            loose = behind < len(text) and not text[last:behind].strip()
            loose = loose or (not marked and MARK.search(part) is not None)
            return Block(start, behind, calls, marked, loose)
        opened = stop is None or not stop.group().strip()
        called = any(line["name"] and shown.allows(line) for line in LINE.finditer(part))
        called = called or (
            TOKEN.match(place.group()) is not None
            and any(map(shown.knows, re.findall(NAME_FORM, text[at : at + 200])))
        )
        if not called and not calls and (marked or opened):
            named = [each[1] for each in (FIRST.match(part), *NAMED.finditer(part)) if each]
            called = any(map(shown.knows, named))  # it begins with a name, or holds one
        if called and not calls:
            why = Unreadable("they are in no known notation")
    except Unreadable as error:
        shaped = marked or PYTHON.match(part) or _is_shaped(part, error, shown)
        why = error if shaped else None
    if why is None:
        return Block(start, end, _nameless(text, place, end), marked)
    if kind is None or text.endswith("```") or isinstance(why, CutOff):
        end = len(text)
    return Block(start, end, _broken(text[at:end], why, shown), marked)


def _goes_on(text: str, last: int, behind: int, *, fenced: bool) -> Unreadable | None:
    """Return why calls are not all of it; they end at ``last``, the marks after them ``behind``."""
    marks, ended = text[last:behind].strip(), behind >= len(text)
    if OPENED.search(text, last, behind) or CUT.match(text, behind) or (";" in marks and not ended):
        return CutOff("the last one is cut off")
    if GOES_ON.match(text, behind) or (not marks and text[behind : behind + 1] in (":", "=", ")")):
        return Unreadable("something else follows them")
    if last == behind and text[behind : behind + 1].isalnum():
        return Unreadable("something else follows them")
    if fenced and not ended and "```" not in marks:
        return Unreadable("something else follows them")
    return None


def _nameless(text: str, place: re.Match[str], end: int) -> list[WrittenCall]:
    """Return a call without a name for a mark on a line of its own, around no call at all."""
    body = text[place.end() : end]
    alone = text[: place.start()].rstrip(" \t")[-1:] in ("", "\n") and body[:1] in ("\n", "")
    if place["fence"] is not None or not alone:
        return []
    inside = CLOSING.split(body, maxsplit=1)[0].strip()
    return [WrittenCall("", None, inside, f"{NOT_READ}: they name no tool: {AGAIN}")]


def _broken(text: str, why: Unreadable, shown: Shown) -> list[WrittenCall]:
    """Return one call for all that begins as calls and can not be read; ``text`` is all of it."""
    end = len(text.rstrip())
    while closing := LAST_MARK.search(text, max(0, end - 64), end):
        end = closing.start()
        while end and text[end - 1].isspace():
            end -= 1
    part = text[:end].lstrip()
    begun = HEAD.match(part)
    names = [found[1] for found in islice(NAMED.finditer(part), MOST_CALLS)]
    raw = _arguments(part, begun) if begun else None
    alone = raw is not None and len(names) == 1 and not isinstance(why, CutOff)
    try:  # nothing but brackets follows on the arguments, as far as they can be read
        only = not (raw or "")[read_value(raw or "").end :].strip("]} \t\n")
    except Unreadable:
        only = True
    alone = alone and only and not PLACE.search(part)
    words = re.findall(NAME_FORM, part[:2_000])
    name = begun[2] if begun else next(filter(shown.knows, (*names, *words)), "")
    return [WrittenCall(name, None, raw or part, f"{NOT_READ}: {why}: {AGAIN}", alone)]


def _arguments(text: str, begun: re.Match[str]) -> str | None:
    """Return the arguments of one call without the brackets around them; None if those lack."""
    raw = text[begun.end() :].rstrip()
    for bracket in re.findall(r"[\[{]", begun[1])[::-1]:
        closing = "}" if bracket == "{" else "]"
        if not raw.endswith(closing):
            return None
        raw = raw.removesuffix(closing).rstrip()
    return raw


def _is_shaped(text: str, why: Unreadable, shown: Shown) -> bool:
    """Whether a text that can not be read has the shape of a call of a tool that is shown."""
    if PYTHON.match(text) or PYTHON_LIST.match(text) or NAME_AND_OBJECT.match(text):
        return isinstance(why, CutOff) or text.rstrip("`\n ").endswith((")", "]"))
    if isinstance(why, CutOff) and _is_beginning(text, shown):
        return True
    named = next((each for each in NAMED.finditer(text) if shown.knows(each[1])), None)
    given = GIVEN.search(text, named.end()) if named else None
    if named is None or given is None or given[1]:
        return False
    before = GIVEN.search(text, 0, named.start())
    return bool(given[0] or isinstance(why, CutOff) or (before and before[0] and not before[1]))


def _is_beginning(text: str, shown: Shown) -> bool:
    """Whether a text was cut in the head of a call."""
    if (name := re.fullmatch(rf"\[\s*({IDENTIFIER})", text)) and shown.knows(name[1]):
        return True
    text = re.sub(r"[\s\"'\\\\]", "", text[:400])
    if any(beginning.startswith(text) for beginning in BEGINNINGS):
        return True
    rests = [text[len(each) :] for each in BEGINNINGS if text.startswith(each)]
    return any(name.startswith(rest) for rest in rests for name in shown.names)


# --- The words around a block: whether its calls are made, or shown to somebody.

EXAMPLE: Final = re.compile(
    r"example|instance|e\.g\.|such as|format|schema|syntax|template|notation|例|比如|格式",
    re.IGNORECASE,
)
"""Words around a call that make it something shown rather than something done."""
SUPPOSED: Final = re.compile(r"would|could|might|you can", re.IGNORECASE)
ANNOUNCED: Final = re.compile(
    r"\b(?:(?:I|we)['’]ll|I will|I should|(?:I|we) (?:need|have|want) to|let me|let['’]s"
    r"|(?:I['’]m|I am) \w+ing)\b|^\W*(?:(?:now|next|first|then),? )?(?:call|search|look|check|read"
    r"|runn?|open|list|find|gett?|writ|edit|creat|fix|updat|try|us)ing\b|我来|让我|接下来|现在|调用",
    re.IGNORECASE,
)
ORDERED: Final = re.compile(r"\W*(?:now|next|first|then)\b", re.IGNORECASE)
REPORTED: Final = re.compile(
    r"\b(?:not|never|refus\w*|contain\w*|says?|said|reads?|shows?|found|ran|was|were|earlier|tells?"
    r"|produc\w+|sends?|sent|needs|fix(?:es|ed)|summari[sz]e|explain\w*|describe|writes?|wrote"
    r"|written|prints?|emits?|wraps?|looks? like)\b|n['’]t\b|cannot|不|没|内容",
    re.IGNORECASE,
)
"""In the last sentence before a call: its model says that it makes it, or tells of one."""
EXPLAINED: Final = re.compile(
    r"[.,;:)|`'\"*]|(?-i:[a-z])|\W*(?:this|that|these|it|the above|so|both)\b[^.\n]{0,80}\b"
    r"(?:is|are|was|means?|looks?|shows?|calls?)\b"
    r"|[^.\n]{0,80}\b(?:form|format|notation|syntax|example|quote|not|never|model|tags?)\b",
    re.IGNORECASE,
)
"""How the words behind a call begin that speak of it."""
LABEL: Final = re.compile(
    r"(?:^|\n)[ \t]*(?:[-*>+|]|\d+[.)]|\#+ [^\n]*|\*\*[^\n]*\*\*:?|[^\n]*[|`(])\s*\Z"
)
"""What stands before a call in a list, a table, a quote, or below a heading."""
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
THOUGHT: Final = re.compile(
    r"(?:\s|<\|start_header_id\|>\w{1,20}<\|end_header_id\|>|<\|im_start\|>assistant"
    r"|<think>(?:(?!</think>).)*+</think>)*+"
    r"(?:Thought:(?:(?!^Action:).)*+(?=^Action:))?",
    re.DOTALL | re.MULTILINE,
)
"""What stands before an answer: its template's head, and what its model thought."""
ESCAPED: Final = re.compile(r"\s*(?:&lt;|[\[{][\s\[{]{0,9}&quot;)")

Role = Literal["made", "shown", "doubt"]


def _role(before: str, after: str, *, marked: bool) -> Role:
    """Say whether calls between two texts are made, or shown; in doubt where neither is told."""
    last = next((each for each in reversed(SENTENCE.split(before)) if each.strip()), "").strip()
    announced = not last or ANNOUNCED.search(last) is not None
    example = EXAMPLE.search(last if marked else before) or LABEL.search(before[-300:])
    spoken = REPORTED.search(last) or example or EXPLAINED.match(after.strip())
    if spoken or (not marked and SUPPOSED.search(before)):
        return "shown"  # words speak of the calls between them
    if last.endswith((":", "：")) and not announced:
        return "doubt" if ORDERED.match(last) else "shown"
    if marked:
        return "made"
    if after.strip():
        return "doubt"
    if announced:
        return "made"
    return "doubt" if last.endswith((".", "!", "…")) else "shown"


def read_written_calls(text: str, visible: Collection[str]) -> tuple[WrittenCall, ...]:
    """Return the calls that a text makes, () where it is an answer. Raises nothing (TL-18).

    A text that is nothing but calls makes them. Words may stand around calls behind a mark unless
    they speak of the calls as shown; around others they have to announce them. Nothing of a text
    runs in which a part is in doubt: all its calls are, and are told to its model.
    """
    shown = Shown(visible)
    thought = THOUGHT.match(text)
    text = text[thought.end() if thought else 0 :].strip()
    text = unescape(text) if ESCAPED.match(text) else text
    blocks = _blocks(text, shown)
    marked = any(block.marked for block in blocks)
    blocks = [block for block in blocks if block.marked or not marked]
    ends = [0, *(block.end for block in blocks)]
    starts = [*(block.start for block in blocks[1:]), len(text)]
    roles = [
        _role(text[before : block.start], text[block.end : after], marked=marked)
        for before, block, after in zip(ends, blocks, starts, strict=False)
    ]
    made = [block for block, role in zip(blocks, roles, strict=True) if role != "shown"]
    if len(made) < len(blocks) and not marked:
        return ()
    calls = [call for block in made for call in block.calls]
    around = not marked and text[: blocks[0].start].strip() if blocks else ""
    if around and not all(shown.knows(call.name) for call in calls):
        return ()
    doubt = next((call.doubt for call in calls if call.doubt), "")
    if len(calls) == 1 and calls[0].alone:
        calls, doubt = [replace(calls[0], doubt="")], ""
    if "doubt" in roles or len(made) < len(blocks) or any(block.loose for block in made):
        doubt = f"{NOT_READ}: words around them leave open whether they are made: {AGAIN}"
    if len(calls) > MOST_CALLS:
        doubt = f"{NOT_READ}: there are more than {MOST_CALLS} of them: give fewer of them"
    if doubt:
        calls = [replace(call, args=None, doubt=doubt) for call in calls[:MOST_CALLS]]
    return tuple(calls)
