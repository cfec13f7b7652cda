"""The notations in which open models write calls into their text (TL-18). Pure.

Calls stand one after the other, each in one of six grammars: a value of JSON that is a call or
calls, a name with arguments behind it, a call or a list of calls of Python, tags, pairs of tags.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from daruma.tools.calls._json_reader import CutOff, Reading, Unreadable, read_value

# --- The words and marks of the notations, as data.

NAMES: Final = ("name", "tool", "tool_name", "function", "action", "recipient_name")
ARGUMENTS: Final = (
    "arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs",
)  # fmt: skip
OWN: Final = frozenset({"id", "type", "call_id", "tool_call_id", "toolUseId", "index"})
"""What else an object that is a call may hold."""
WHOLES: Final = ("tool_calls", "function_calls", "tool_uses", "calls")
"""Keys of an object that hold a list of calls."""
INNER: Final = ("function", "function_call", "functionCall", "tool_call", "tool_use", "toolUse")
"""Keys of an object that hold one call."""
AROUND: Final = frozenset(
    {"role", "content", "refusal", "finish_reason", "thought", "thoughts", "reasoning"}
    | {"reasoning_content"}
)
"""What a message holds beside its calls."""
MOST_CALLS: Final = 128
"""Calls of one text; six times what a turn may run unless it is told otherwise."""

BAR: Final = "[|｜]"
NAME_FORM: Final = r"[A-Za-z_][\w.:/-]{0,127}"
PREFIX: Final = rf"(?:\w{{1,20}}[:_]|{BAR}DSML{BAR})?"
BEGUN_TAG: Final = (
    rf"<(?P<tag>{PREFIX}(?:invoke|function))"
    rf"""(?:\s+name)?\s*=\s*["']?({NAME_FORM})"""
)
OPENING: Final = (
    rf"<{BAR}?{PREFIX}(?:tool|function)[_▁]?(?:call|use)s?(?:[_▁]section)?"
    rf"(?:[_▁](?:begin|start))?{BAR}?>"
    r"|<\|python_tag\|>|\[TOOL_CALLS\]|<\|START_ACTION\|>|<\|action_start\|>\s*<\|plugin\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>\s*commentary\s+to="
    r"|(?:<\|start\|>assistant\s*|(?<![^\n]))to=(?=functions\.)"
    r"|<start_function_call>|<TOOLCALL>|\bfunctools(?=\s*\[)|✿FUNCTION✿:?"
    rf"|(?<![^\n])Action:?(?=[ \t]*{NAME_FORM}[ \t]*\n\s*Action Input\b)"
)
CLOSED_BY: Final = rf"</{PREFIX}\w{{1,30}}>|<{BAR}/?[\w▁]{{1,40}}{BAR}>|\[/TOOL_CALLS\]|```[\w-]*"
NAME: Final = re.compile(NAME_FORM)
MARK: Final = re.compile(rf"(?<![`\"'])(?:{OPENING}|(?={BEGUN_TAG}))", re.IGNORECASE)
"""What opens calls in some model's template, and is written for nothing else."""
CLOSING: Final = re.compile(CLOSED_BY, re.IGNORECASE)
BETWEEN: Final = re.compile(rf"(?:[\s;]|{OPENING}|{CLOSED_BY})*+", re.IGNORECASE)

NOT_READ: Final = "none of the calls in this answer was run, as they can not be read beyond doubt"
AGAIN: Final = "give them all again, and nothing else"


@dataclass(frozen=True)
class WrittenCall:
    """A call as it was written: ``args`` is None where they are still to be read from ``raw``.

    ``doubt`` says why a call may neither run nor be repaired: its model has to give it again. Where
    it is ``alone`` the only call of its text, it may be repaired all the same.
    """

    name: str
    args: dict[str, Any] | None
    raw: str
    doubt: str = ""
    alone: bool = False


INDEX: Final = re.compile(r"\.call\Z|:\d{0,4}\Z")
"""What notations put behind a tool's name."""


class Shown(NamedTuple):
    """The names of the tools that are shown, and whether a mark says that here are calls."""

    names: Collection[str]
    marked: bool = False

    def meant(self, name: str) -> str:
        """Return a tool's name without what a notation puts around it; else as it is."""
        bare = INDEX.sub("", name)
        forms = (name, bare, re.split(r"[.:]", bare)[-1])
        return next((each for each in forms if each in self.names), name)

    def knows(self, name: str) -> bool:
        """Whether a tool of that name is shown."""
        return self.meant(name) in self.names

    def allows(self, found: re.Match[str]) -> bool:
        """Whether what was found is a call; without a mark, a bare name has to be a tool's."""
        name = found.groupdict().get("name")
        return self.marked or not name or self.knows(name)


# --- Values of JSON, or of Python, that are calls.


class Source(NamedTuple):
    """A value, the text that it was read from, and where it ends in the text around that."""

    reading: Reading
    text: str
    end: int


def _source(text: str, at: int) -> Source:
    """Read the value at a place. Where only closing brackets lack before a mark, they are open."""
    try:
        reading = read_value(text, at)
        return Source(reading, text, reading.end)
    except Unreadable:
        closing = CLOSING.search(text, at)
        if closing is None:
            raise
        try:
            part = text[at : closing.start()].rstrip()
            reading = read_value(part)
        except Unreadable:
            reading = None
        if reading is None or not reading.unclosed:
            raise
        return Source(reading, part, closing.start())


def _calls_in(source: Source, shown: Shown) -> list[WrittenCall]:
    """Return the calls that a value is; none if it is anything else. Raises for half of them."""
    value = source.reading.value
    if isinstance(value, str):
        return _calls_in_text(value, source, shown)
    if isinstance(value, Mapping):
        whole = next((key for key in WHOLES if key in value), "")
        value = value[whole] if value.keys() - AROUND == {whole} else value
    items = value if isinstance(value, list) else [value]
    found = [_call(each, source, shown) for each in items]
    calls = [each for each in found if each is not None]
    if len(calls) == len(found):
        return _closed(calls, source)
    if any(shown.knows(each.name) for each in calls):
        raise Unreadable("not all of it is calls")
    return []


def _calls_in_text(value: str, source: Source, shown: Shown) -> list[WrittenCall]:
    text = value.strip()
    if text[:1] not in ("{", "["):
        return []
    if "single quotes" in source.reading.rungs and "\\" in source.text:
        raise Unreadable("a backslash in single quotes can be read in two ways")
    reading = read_value(text)
    if text[reading.end :].strip() or source.reading.unclosed:
        raise Unreadable("a call is followed by more")
    return _calls_in(Source(reading, text, reading.end), shown)


def _call(item: Any, source: Source, shown: Shown) -> WrittenCall | None:
    if isinstance(item, str):
        found = _calls_in_text(item, source, shown)
        return found[0] if len(found) == 1 else None
    if not isinstance(item, Mapping):
        return None
    if inner := next((key for key in INNER if isinstance(item.get(key), Mapping)), ""):
        return None if item.keys() - {inner} - OWN - AROUND else _call(item[inner], source, shown)
    names = [key for key in NAMES if key in item]
    given = [key for key in ARGUMENTS if key in item]
    name = item[names[0]] if len(names) == 1 else None
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        return None
    rest = item.keys() - {*names, *given} - OWN
    if rest or len(given) != 1:
        if given and shown.knows(name) and "description" not in rest:
            raise Unreadable(f"the call holds more than a name and arguments: {sorted(rest)}")
        alone = not (given or rest or source.reading.unclosed)
        return WrittenCall(name, {}, "") if alone and shown.marked else None
    value, exact = item[given[0]], not source.reading.rungs
    raw = source.text[source.reading.spans[id(item), given[0]]]
    raw = value if exact and isinstance(value, str) else raw
    built = _build_call(name, value, raw, shown, exact=exact)
    return WrittenCall(name, {}, "") if value is None else built


def _build_call(
    name: str, value: Any, raw: str, shown: Shown, *, exact: bool
) -> WrittenCall | None:
    """Return a call of a name and the value behind it; None where it is words of no known tool.

    Arguments that were not read exactly are still to be read, from ``raw``.
    """
    if isinstance(value, str):
        words = value.strip() and not value.lstrip().startswith(("{", "```", '"', "'"))
        try:
            value = json.loads(value) if exact and not words else None
        except (ValueError, RecursionError):
            value = None
        if not words:
            return WrittenCall(name, value if isinstance(value, dict) else None, raw)
    if isinstance(value, dict):
        return WrittenCall(name, value if exact else None, raw)
    return WrittenCall(name, None, raw) if shown.knows(name) else None


def _closed(calls: list[WrittenCall], source: Source) -> list[WrittenCall]:
    """Return calls of which the last lacks closing brackets, where nothing else can be missing.

    Of objects only: a list could have gone on. The bracket that lacks may be one of an object in
    the arguments: their schema has to tell, so that theirs is taken off.
    """
    node, above = source.reading.value, 0
    while above < source.reading.unclosed:
        if not isinstance(node, dict):
            raise CutOff("a list of calls ends before its closing bracket")
        key, last = next(reversed(node.items()))
        above += 1
        if key in ARGUMENTS:
            return [*calls[:-1], _without_bracket(calls[-1], last, source, above)]
        node = last
    return calls


def _without_bracket(call: WrittenCall, args: Any, source: Source, above: int) -> WrittenCall:
    if source.reading.unclosed > above:  # the arguments themselves are open
        return replace(call, args=None)
    if not isinstance(args, dict) or not args:
        return call
    key, last = next(reversed(args.items()))
    if key in OWN:
        raise CutOff(f"a bracket lacks, and {key!r} may be the call's own")
    return replace(call, args=None, raw=call.raw[:-1]) if isinstance(last, dict) else call


# --- Six grammars of calls. Each reads from its opening on, and says where it ended.

Read = tuple[list[WrittenCall], int]


def _read_value(text: str, found: re.Match[str], shown: Shown) -> Read:
    source = _source(text, found.start())
    calls = _calls_in(source, shown)
    if not calls and source.reading.unclosed:
        raise CutOff("the answer ends in the middle of them")
    if not calls and isinstance(source.reading.value, str):
        raise Unreadable("a text stands where a call should")
    if source.reading.unclosed and source.text is text:
        calls[-1:] = [_cut(each) for each in calls[-1:]]
    return calls, source.end


def _cut(call: WrittenCall) -> WrittenCall:
    """Return a call that its text may have cut off."""
    if call.args is not None:
        return call
    return replace(call, doubt=f"{NOT_READ}: the last one is cut off: {AGAIN}", alone=True)


def _read_arguments(text: str, at: int, name: str, shown: Shown) -> Read:
    source = _source(text, at)
    raw = source.text[(at if source.text is text else 0) : source.reading.end]
    return _of_reading(name, source.reading, raw, shown), source.end


def _of_reading(name: str, reading: Reading, raw: str, shown: Shown) -> list[WrittenCall]:
    exact = not (reading.rungs or reading.unclosed)
    call = _build_call(name, reading.value, raw, shown, exact=exact)
    cut = reading.unclosed and isinstance(reading.value, dict)
    return [_cut(call) if cut else call] if call else []


def _read_python(text: str, found: re.Match[str], shown: Shown) -> Read:
    """Read a call of Python with keywords, or with one object."""
    name, at = shown.meant(found["name"]), found.end()
    given: dict[str, Reading] = {}
    raws: list[str] = []
    while (closing := PYTHON_END.match(text, at)) is None:
        keyword = KEYWORD.match(text, at)
        start = keyword.end() if keyword else at
        reading = read_value(text, start)
        raw = text[start : reading.end].strip()
        key = keyword["key"] if keyword else ""
        if key in given or (given and not key) or "" in given or "\\/" in raw:
            raise Unreadable("its arguments can be read in two ways")
        given[key] = reading
        raws.append(f"{json.dumps(key)}: {raw}" if key else raw)
        comma = PYTHON_GOES_ON.match(text, reading.end)
        if comma is None:
            raise CutOff("a call of Python is not closed where it should be")
        at = comma.end()
    if found["print"] and (closing := PYTHON_END.match(text, closing.end())) is None:
        raise CutOff("a call of Python is not closed where it should be")
    if "" in given:
        return _of_reading(name, given[""], raws[0], shown), closing.end()
    exact = not any(each.rungs for each in given.values())
    args = {key: each.value for key, each in given.items()}
    return [WrittenCall(name, args if exact else None, f"{{{', '.join(raws)}}}")], closing.end()


def _read_python_list(text: str, found: re.Match[str], shown: Shown) -> Read:
    at, calls = found.end(), list[WrittenCall]()
    while call := PYTHON.match(text, at):
        more, at = _read_python(text, call, shown)
        calls += more
        goes_on = PYTHON_LIST_GOES_ON.match(text, at)
        if goes_on is None:
            break
        at = goes_on.end()
        if goes_on["end"]:
            return calls, at
    raise CutOff("a list of calls ends before its closing bracket")


def _read_tags(text: str, found: re.Match[str], shown: Shown) -> Read:
    """Read a call whose arguments are tags, or an object in one."""
    name, at, closing = shown.meant(found[2]), found.end(), f"</{found['tag']}>"
    if text[at : at + 1] in ("{", '"', "'"):
        calls, at = _read_arguments(text, at, name, shown)
    else:
        args: dict[str, Any] = {}
        while found_one := PARAMETER.match(text, at):
            own_lines = found_one["name"] is None  # a notation that gives each its own lines
            at = _add_tagged(args, found_one, f"</{found_one['tag']}>", own_lines=own_lines)
        calls = [WrittenCall(name, args, json.dumps(args, ensure_ascii=False))]
    at = skip(SPACE, text, at)
    if not text.startswith(closing, at):
        raise CutOff(f"{closing} lacks")
    return calls, at + len(closing)


def _read_pairs(text: str, found: re.Match[str], shown: Shown) -> Read:
    """Read a tool's name and pairs of tags behind it."""
    at, args = found.end(), dict[str, Any]()
    while pair := PAIR.match(text, at):
        at = _add_tagged(args, pair, "</arg_value>")
    if PAIRS_END.match(text, at) is None:
        raise CutOff("a call is not closed")
    if not args and not shown.knows(found["name"]):
        return [], at
    return [WrittenCall(shown.meant(found["name"]), args, json.dumps(args))], at


def _add_tagged(
    args: dict[str, Any], opened: re.Match[str], closing: str, *, own_lines: bool = False
) -> int:
    """Read the value of an argument up to its closing tag, and return where that ends."""
    text, at = opened.string, opened.end()
    end = text.find(closing, at)
    if end < 0:
        raise CutOff(f"{closing} lacks")
    value = text[at:end]
    if own_lines and value[:1] == value[-1:] == "\n":
        value = value[1:-1]
    if opened["key"] in args or INNER_TAG.search(value):
        raise Unreadable("its arguments can be read in two ways")
    args[opened["key"]] = value
    return end + len(closing)


IDENTIFIER: Final = r"[A-Za-z_][\w.]{0,127}"
SPACE: Final = re.compile(r"\s*")
PYTHON: Final = re.compile(
    rf"(?:\#[^\n]*\n\s*)*+(?:(?P<print>print)\s*\(\s*)?(?:await\s+)?"
    rf"(?:\w{{1,60}}\s*=\s*(?={IDENTIFIER}\())?(?P<name>{IDENTIFIER})\("
)
PYTHON_LIST: Final = re.compile(rf"\[\s*(?={IDENTIFIER}\()")
PYTHON_END: Final = re.compile(r"\s*\)")
PYTHON_GOES_ON: Final = re.compile(r"\s*(?:,|(?=\)))")
PYTHON_LIST_GOES_ON: Final = re.compile(r"\s*(?:,\s*|(?P<end>\]))+")
KEYWORD: Final = re.compile(r"\s*(?P<key>[A-Za-z_]\w{0,127})\s*=(?!=)\s*")
PARAMETER: Final = re.compile(
    rf"\s*<(?P<tag>{PREFIX}(?:parameter|param|argument))(?P<name>\s+name)?\s*="
    r"""\s*["']?(?P<key>[\w.$-]{1,128})["']?(?:\s+string="\w{4,5}")?\s*>"""
)
INNER_TAG: Final = re.compile(rf"<{PREFIX}(?:parameter|param|argument)\b[^<>]{{0,200}}=|<arg_")
PAIR: Final = re.compile(r"\s*<arg_key>\s*(?P<key>[\w.$-]{1,128})\s*</arg_key>\s*<arg_value>")
PAIRS_END: Final = re.compile(r"\s*</")

GRAMMARS: Final[Sequence[tuple[re.Pattern[str], Callable[..., Read]]]] = (
    (re.compile(rf"""{BEGUN_TAG}["']?\s*>\s*"""), _read_tags),
    (PYTHON_LIST, _read_python_list),
    (re.compile(r"[\[{\"']"), _read_value),
    (PYTHON, _read_python),
    (re.compile(rf"(?P<name>{NAME_FORM})\s*(?=<arg_key>|</tool_call>)"), _read_pairs),
    (
        re.compile(
            rf"(?:function<{BAR}tool[_▁]sep{BAR}>)?(?P<name>{NAME_FORM}?)(?::\d+)?"
            rf"(?:\s|\[CALL_ID\]\w{{1,40}}|\[ARGS\]|<{BAR}[\w▁]{{1,40}}{BAR}>(?:commentary)?\s*(?:json)?"
            r"|✿ARGS✿:?|Action Input:?|```(?:json)?)*+(?=[{\"'])"
        ),
        lambda text, found, shown: _read_arguments(
            text, found.end(), shown.meant(found["name"]), shown
        ),
    ),
)


def read_calls(text: str, at: int, shown: Shown) -> tuple[list[WrittenCall], int, int]:
    """Read calls one after the other, from a place to where there is none.

    Returns them, where the last of them ends, and where the marks behind it end. Raises
    :class:`Unreadable` for what begins as a call.
    """
    calls: list[WrittenCall] = []
    end = at
    while len(calls) <= MOST_CALLS:
        at = skip(BETWEEN, text, at)
        opened = ((read, opening.match(text, at)) for opening, read in GRAMMARS)
        fits = ((read, found) for read, found in opened if found and shown.allows(found))
        read, found = next(fits, (None, None))
        more, behind = read(text, found, shown) if read else ([], at)
        if not more:
            break
        calls += more
        at = end = behind
    return calls, end, at


def skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
