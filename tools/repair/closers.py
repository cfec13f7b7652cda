"""A text with one closing bracket too many: any of them may be the one."""

from typing import Final

from daruma.tools.repair.outcome import Unreadable
from daruma.tools.repair.reading import Reading, read_value
from daruma.tools.repair.tokens import tokens

MOST_CLOSERS: Final = 64
"""Closing brackets of a text of which one is too many: each may be the one."""


def one_closer_less(text: str) -> list[Reading]:
    """Return the readings of a text with a bracket too many: any one may be it."""
    places = [t.start for t in tokens(text) if t.kind == "mark" and t.value in ("}", "]")]
    if len(places) > MOST_CLOSERS:
        raise Unreadable("there is a closing bracket too many")
    found: list[Reading] = []
    for place in places:
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
