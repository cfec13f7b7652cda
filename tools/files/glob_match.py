"""File name patterns as people write them for coding tools, the same on every Python version."""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

MOST_ALTERNATIVES: Final = 64


class Glob:
    """A pattern with `*`, `?`, `[...]`, `**` for any directories, and `{a,b}`.

    Without a `/` it is matched against the last part of a path, at any depth.
    """

    def __init__(self, pattern: str) -> None:
        self._choices = [_pieces(each) for each in _alternatives(pattern)]

    def matches(self, path: str) -> bool:
        """Whether a relative path with `/` between its parts fits."""
        parts = tuple(path.split("/"))
        return any(_fits(parts, pieces) for pieces in self._choices)


def _pieces(pattern: str) -> tuple[str, ...]:
    rooted = pattern.removeprefix("./").removeprefix("/")
    return tuple(rooted.split("/")) if "/" in pattern else ("**", pattern)


def _alternatives(pattern: str) -> list[str]:
    waiting, done = [pattern], list[str]()
    while waiting:
        each = waiting.pop(0)
        group = re.search(r"\{([^{}]*,[^{}]*)\}", each)
        if group is None or len(waiting) + len(done) >= MOST_ALTERNATIVES:
            done.append(each)
        else:
            choices = group[1].split(",")
            waiting += [each[: group.start()] + c + each[group.end() :] for c in choices]
    return done


@lru_cache(maxsize=4096)
def _fits(parts: tuple[str, ...], pieces: tuple[str, ...]) -> bool:
    if not pieces:
        return not parts
    if pieces[0] == "**":
        # `dir/**` means what is beneath, so it needs one part more.
        here = bool(parts) if len(pieces) == 1 else _fits(parts, pieces[1:])
        return here or (bool(parts) and _fits(parts[1:], pieces))
    return bool(parts) and fnmatchcase(parts[0], pieces[0]) and _fits(parts[1:], pieces[1:])
