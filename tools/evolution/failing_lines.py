"""The lines of a failing check, or of a tool's error, that say what is wrong. Pure."""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from daruma.state.noise import without_ids
from daruma.tools.evolution.kept_text import kept_line
from daruma.tools.key_masking import without_keys

_MOST_LINES: Final = 2000
_LONGEST_LINE: Final = 500
_LONGEST_SIGNATURE: Final = 250

_SECTION: Final = re.compile(r"^\$ (.+)\n\[([^\n]+)\]$", re.MULTILINE)
_SUMMARY: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)(?: - (.+))?$")
_ASSERTED: Final = re.compile(r"^E\s+(\S.*)$")
_RAISED: Final = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*$")
_TOLD: Final = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|fatal|panicked|denied|not found)\b", re.IGNORECASE
)
_COUNTED: Final = re.compile(
    r"^[=\-_. ]*(?:Found )?\d+ (?:failed|passed|errors?|problems?)\b|^[\W_]*$"
)
_LINTED: Final = re.compile(r"^(?:\S+:\d+:\d+:? )?[A-Z]{1,4}\d{3,4}\b.*$")
_NUMBER: Final = re.compile(r"\d+")
_NUMBERED: Final = re.compile(r"\w*\d\w*")
_NAME: Final = re.compile(r"(?:[^\W\d]|(?<=[^\W\d])\d{1,3}(?!\d)|_)+")
_ROOT: Final = re.compile(r"(?<![\w.])(?:/[\w.@+~-]+)+/(?=[\w.@+~-])")


class Failing(NamedTuple):
    """``signature`` is equal for what fails alike; ``text`` is one line for a reader."""

    signature: str
    text: str


def checks_in(excerpt: str) -> Iterator[Failing]:
    """Yield the failing checks of what a verification said (as its ``excerpt`` has it)."""
    found = list(_SECTION.finditer(excerpt))
    ends = [*(each.start() for each in found[1:]), len(excerpt)]
    for each, end in zip(found, ends, strict=True):
        yield check_failed(each[1], each[2], excerpt[each.end() : end])


def check_failed(command: str, outcome: str, output: str) -> Failing:
    """Return what a check that is red says: by its failing lines, else by its outcome."""
    name = kept_line(_rootless(command[:_LONGEST_LINE]), 80)
    said = telling_line(output)
    text = f"{name} failed: {said}" if said else f"{name}: {outcome}"
    return Failing(signed("check", name, said or outcome), kept_line(text))


def telling_line(output: str) -> str:
    """Return the line that tells most of what went wrong; empty where there is none.

    A test runner's own summary first, then what was asserted, what was raised, a linter's rule,
    what speaks of an error, and the last line.
    """
    lines = [line.strip()[:_LONGEST_LINE] for line in output.strip().splitlines()[-_MOST_LINES:]]
    lines = [line for line in lines if not _COUNTED.match(line)]
    for look in _LOOKS:
        if found := next(filter(None, map(look, lines)), ""):
            return _with_assertion(found, lines)
    return lines[-1] if lines else ""


def signed(*parts: str) -> str:
    """Return parts as a signature: without numbers, times, ids, and where a workspace lies.

    A short number that is part of a name stays, as in ``test_7`` and ``E501``.
    """
    # A key that has lost its numbers would be taken for words.
    line = " ".join(without_keys(_rootless(":".join(parts))[:_LONGEST_LINE]).split())
    bare = _NUMBERED.sub(_unless_a_name, without_ids(line))
    return kept_line(bare, _LONGEST_SIGNATURE)


def _unless_a_name(found: re.Match[str]) -> str:
    return found[0] if _NAME.fullmatch(found[0]) else _NUMBER.sub("#", found[0])


def _summarised(line: str) -> str:
    found = _SUMMARY.match(line)
    if not found:
        return ""
    name = found[1].rpartition("::")[2]
    return f"{name}: {found[2]}" if found[2] else f"{name}:"


def _with_assertion(found: str, lines: list[str]) -> str:
    if not found.endswith(":"):
        return found
    return f"{found} {next(filter(None, map(_asserted, lines)), '')}".rstrip(" :")


def _asserted(line: str) -> str:
    found = _ASSERTED.match(line)
    return found[1] if found else ""


def _raised(line: str) -> str:
    return line if _RAISED.match(line) else ""


def _told(line: str) -> str:
    return line if _TOLD.search(line) else ""


def _linted(line: str) -> str:
    return line if _LINTED.match(line) else ""


_LOOKS: Final[tuple[Callable[[str], str], ...]] = (
    _summarised,
    _asserted,
    _raised,
    _linted,
    _told,
)


def _rootless(text: str) -> str:
    """Return text with the last part of each absolute path alone."""
    return _ROOT.sub("", text)
