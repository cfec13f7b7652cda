"""Finding the one place that an edit means, and saying what is wrong when it is not one."""

import re
from typing import Final

from daruma.tools.errors import EditRefused

MOST_COUNTED: Final = 100
MOST_LISTED: Final = 10


def only_match(view: str, old: str) -> int:
    """Where `old` begins in `view`; EditRefused, saying where to look, unless exactly once."""
    found = _positions(view, old)
    if not found:
        raise EditRefused(f"old_str does not occur in the file{_near_miss(view, old)}")
    if len(found) > 1:
        lines = ", ".join(str(view.count("\n", 0, at) + 1) for at in found[:MOST_LISTED])
        count = f"{len(found)} times" if len(found) < MOST_COUNTED else "very many times"
        more = ", …" if len(found) > MOST_LISTED else ""
        raise EditRefused(f"old_str occurs {count}, on lines {lines}{more}: add lines around it")
    return found[0]


def _positions(view: str, old: str) -> list[int]:
    found: list[int] = []
    at = view.find(old)
    while at >= 0 and len(found) < MOST_COUNTED:
        found.append(at)
        at = view.find(old, at + 1)
    return found


def _near_miss(view: str, old: str) -> str:
    wanted = "".join(old.split())
    at = "".join(view.split()).find(wanted) if wanted else -1
    if at < 0:
        return ": view it and copy the text exactly"
    line = view.count("\n", 0, _place_of_visible(view, at)) + 1
    return f", but text that differs only in white space is on line {line}: copy it exactly"


def _place_of_visible(view: str, index: int) -> int:
    for word in re.finditer(r"\S+", view):
        if index < len(word[0]):
            return word.start() + index
        index -= len(word[0])
    return len(view)
