"""Tool calls that a model wrote into its text instead of making them (TL-18)."""

import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from daruma.tools.repair.call_shape import WrittenCall, broken_call, calls_in
from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.reading import read_value

OPENING: Final = re.compile(r"^[ \t]*(?:(<tool_call>)|```tool_calls?[ \t]*\n)\s*", re.MULTILINE)
CLOSING: Final = re.compile(r"\s*(?:</tool_call>|```)")
WHOLE_FENCE: Final = re.compile(r"```(?:json|tool_calls?)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
LAST_FENCE: Final = re.compile(r"^```json[ \t]*\n", re.MULTILINE)
EXAMPLE: Final = re.compile(
    r"example|instance|e\.g\.|such as|would|could|might|you can|format|schema|例|比如|格式",
    re.IGNORECASE,
)
"""Words before a call that make it something shown rather than something done."""
ANNOUNCED: Final = re.compile(
    r"\b(?:I['’]ll|I will|I['’]m|I am|I (?:need|have|want) to|let me|let['’]s|calling|using|now"
    r"|next|first|then)\b|我来|让我|接下来|现在|调用",
    re.IGNORECASE,
)
REPORTED: Final = re.compile(
    r"\b(?:not|never|refus\w*|contain\w*|says?|said|reads?|shows?|found|ran|was|were|earlier)\b"
    r"|n['’]t\b|cannot|不|没|内容",
    re.IGNORECASE,
)
"""In the last sentence before a call: its model says that it makes it, or tells of one."""
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|[。！？\n]+")
SPACE: Final = re.compile(r"\s+")
MOST_CALLS: Final = 128
"""Calls of one text; six times what a turn may run unless it is told otherwise."""
NAMED: Final = re.compile(r"""["'](?:name|tool|tool_name)["']\s*:\s*["']([^"']{1,128})["']""")


def written_calls(text: str, visible: Collection[str]) -> tuple[WrittenCall, ...]:
    """Return the calls that a text is, () where it is an answer. Raises nothing.

    The whole text must be the call or calls, bare or in one fence. Words around are taken only
    with ``<tool_call>`` tags and ``tool_call`` fences, and before one last ``json`` fence that
    names a visible tool exactly, if they announce the call and do not speak of an example.
    """
    text = text.strip()
    marked = tuple(islice(_marked(text), MOST_CALLS))
    if marked:
        return marked
    if text.startswith("```"):
        fence = WHOLE_FENCE.fullmatch(text)
        return _whole(fence.group(1).strip()) if fence else ()
    return _whole(text) if text.startswith(("{", "[")) else _last(text, visible)


def _whole(text: str) -> tuple[WrittenCall, ...]:
    """Return the calls that a text is from its first character to its last, one after the other."""
    found: list[WrittenCall] = []
    at = 0
    while at < len(text):
        try:
            reading = read_value(text, at)
        except Unreadable:
            return _broken(text) if not found or not _word_behind(text, at) else ()
        calls = calls_in(reading.value)
        if reading.unclosed or (reading.rungs and calls):
            return _broken(text) or calls
        if not calls or len(found) > MOST_CALLS:
            return ()
        found.extend(calls)
        at = _next_place(text, reading.end)
    return tuple(found)


def _broken(text: str) -> tuple[WrittenCall, ...]:
    broken = broken_call(text)
    return (broken,) if broken else ()


def _next_place(text: str, at: int) -> int:
    behind = SPACE.match(text, at)
    return behind.end() if behind else at


def _word_behind(text: str, at: int) -> bool:
    """Whether words follow a whole call: then it is shown, or its model goes on."""
    return text[at : at + 1] not in ("{", "[", "}", "]")


def _marked(text: str) -> Iterator[WrittenCall]:
    """Yield the calls in tags and ``tool_call`` fences that stand in no other fence."""
    at = seen = fences = 0
    while opening := OPENING.search(text, at):
        fences += text.count("```", seen, opening.start())
        at = seen = opening.end()
        if fences % 2:
            fences += opening.group(1) is None
            continue
        end = _end_of_values(text, at)
        if end is None:
            yield _unreadable(text[at:])
            return
        yield from _whole(text[at:end].strip()) or (_unreadable(text[at:end]),)
        closing = CLOSING.match(text, end)
        at = seen = closing.end() if closing else end


def _end_of_values(text: str, at: int) -> int | None:
    """Return where the values end that begin here, None where they or what is behind is broken."""
    try:
        while True:
            reading = read_value(text, at)
            at = reading.end
            if reading.unclosed:
                return None
            if not text[at : at + 100].strip() or CLOSING.match(text, at):
                return at
    except Unreadable:
        return None


def _unreadable(text: str) -> WrittenCall:
    body = re.split(r"</tool_call>|\n```", text, maxsplit=1)[0].strip()
    named = NAMED.search(body[:2_000])
    return broken_call(body) or WrittenCall(named.group(1) if named else "", None, body)


def _last(text: str, visible: Collection[str]) -> tuple[WrittenCall, ...]:
    opening = LAST_FENCE.search(text)
    if opening is None or text.count("```") != 2 or not text.endswith("```"):
        return ()
    if EXAMPLE.search(text, 0, opening.start()) or not _announced(text[: opening.start()]):
        return ()
    calls = _whole(text[opening.end() : -3].strip())
    sure = all(call.name in visible and call.args is not None for call in calls)
    return calls if sure else ()


def _announced(words: str) -> bool:
    last = next((each for each in reversed(SENTENCE.split(words)) if each.strip()), "")
    return ANNOUNCED.search(last) is not None and REPORTED.search(last) is None
