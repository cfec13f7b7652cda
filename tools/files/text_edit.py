"""Edits of text as pure functions: everything outside the edit stays as it is, line ends too.

The model writes `\\n`; a file may write `\\r\\n`, or both. Positions are found in the text with
plain line ends and carried over to the text as it is.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass

from daruma.tools.errors import EditRefused
from daruma.tools.files.text_match import only_match


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after an edit, and the lines (from 1, inclusive) that the edit touched."""

    text: str
    first: int
    last: int


def plain(text: str) -> str:
    """The text with `\\n` for every `\\r\\n`."""
    return text.replace("\r\n", "\n")


def replace_once(text: str, old: str, new: str) -> Edited:
    """Put `new` in place of the only occurrence of `old`.

    EditRefused if there is none, or more than one (overlapping ones count), or nothing to change.
    """
    old, new, view = plain(old), plain(new), plain(text)
    if not old:
        raise EditRefused("old_str is empty: give the text to replace, or use insert_at_line")
    if old == new:
        raise EditRefused("old_str and new_str are the same: there is nothing to change")
    start = only_match(view, old)
    return _spliced(text, start, old, new)


def insert_after(text: str, line: int, addition: str) -> Edited:
    """Put whole lines after `line` (0: before the first); a missing final line end stays missing.

    EditRefused if there is no such line.
    """
    view, block = plain(text), plain(addition).removesuffix("\n")
    count = len(lines_of(view))
    if not 0 <= line <= count:
        raise EditRefused(f"insert_line is {line}: it must be from 0 to {count}, the last line")
    at, last = _start_of_line(view, line), line + 1 + block.count("\n")
    unfinished = at == len(view) and not view.endswith("\n") and view != ""
    if unfinished:  # an empty last line can not be told without a line end of its own
        block = f"\n{block}" if block.rpartition("\n")[2] else f"\n{block}\n"
    edited = _spliced(text, at, "", block if unfinished else f"{block}\n")
    return Edited(edited.text, line + 1, last)


def lines_of(text: str) -> list[str]:
    """The lines of a text with plain line ends, without these; an empty text has none."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _start_of_line(view: str, line: int) -> int:
    at = 0
    for _ in range(line):
        at = view.find("\n", at) + 1
        if at == 0:
            return len(view)
    return at


def _spliced(text: str, start: int, old: str, new: str) -> Edited:
    # What old and new share at their ends is not part of the edit: its line ends stay as they are.
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    inner = new[head : len(new) - tail]
    crlf = [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
    first, after = (p + bisect_left(crlf, p) for p in (start + head, start + len(old) - tail))
    result = text[:first] + inner.replace("\n", _line_end(text, first, after)) + text[after:]
    top = text.count("\n", 0, first) + 1
    return Edited(result, top, top + inner.count("\n"))


def _shared(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    differ = (index for index, (a, b) in enumerate(pairs) if a != b)
    return next(differ, min(len(one), len(other)))


def _line_end(text: str, first: int, after: int) -> str:
    for at in (text.find("\n", first, after), text.rfind("\n", 0, first), text.find("\n", after)):
        if at >= 0:
            return "\r\n" if text[at - 1 : at] == "\r" else "\n"
    return "\n"
