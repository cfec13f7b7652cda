"""What may stand around the arguments without doubt: fences, end marks, plain words."""

import re
from typing import Final

from daruma.tools.repair.outcome import Unreadable

FENCE: Final = re.compile(r"```[A-Za-z_-]*[ \t]*\n?")
END_MARKS: Final = re.compile(r"(?:</?tool_call>|<\|[a-z_]{1,30}\|>|</s>|\s)+\Z")
PROSE: Final = re.compile(r"[^\W\d_]*(?:[\s.,:;!’'—–-]+[^\W\d_]*)*")
WORDS: Final = re.compile(r"[^\W\d]+")
LONGEST: Final = 2_000
"""Characters of prose on either side; more is an essay that shows an object."""


def bare(text: str) -> tuple[str, tuple[str, ...]]:
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


def checked_prose(before: str, after: str, names: frozenset[str]) -> None:
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
