"""One file of ignore patterns, as git reads it.

Paths and patterns are Latin-1 text of their bytes, since to git ``?`` is one byte.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

_GLOB = re.compile(r"[*?\[\\]")
_GROUP = re.compile(r"\(\?P<\w+>")
_ODD_BRACKET = re.compile(r"(?<!\\)\[[^\]]*(?:[\[\\/]|--|&&|~~|\|\|)[^\]]*\]")
"""Named classes, backslashes and the like in brackets: the library takes them for its own syntax,
so that these patterns fit nothing here."""

_STARS = 4
"""In one piece of a pattern; more could take for ever on a long name, so that these fit nothing."""

_NEVER = re.compile(r"(?!)")


def lines_of(data: bytes) -> tuple[str, ...]:
    """Return the patterns of a file without comments and without what ends them."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = (line.removesuffix("\r").partition("\0")[0] for line in text.split("\n"))
    trimmed = (_without_trailing_spaces(line) for line in lines if not line.startswith("#"))
    return tuple(line for line in trimmed if line)


class Patterns:
    """Patterns in order: the last one that fits a path says whether it is ignored."""

    def __init__(self, lines: Iterable[str]) -> None:
        kinds = groupby(map(_negated, lines), key=lambda each: each[0])
        groups = [(not negated, _Group([body for _, body in each])) for negated, each in kinds]
        self._groups = groups[::-1]

    def verdict(self, path: str, *, directory: bool) -> bool | None:
        """Say whether a path is ignored; None where no pattern fits it, whatever fits above it."""
        name = path.rpartition("/")[2]
        for ignored, group in self._groups:
            if group.fits(path, name, directory=directory):
                return ignored
        return None


@dataclass
class _Group:
    """Patterns between which the order does not matter; most are names or endings of names."""

    bodies: list[str]
    _names: set[str] = field(default_factory=set)
    _directories: set[str] = field(default_factory=set)
    _endings: tuple[str, ...] = ()
    _rest: re.Pattern[str] = _NEVER

    def __post_init__(self) -> None:
        rest = [body for body in self.bodies if not self._simple(body)]
        if found := [regex for body in rest for regex in _regex(body)]:
            self._rest = re.compile("|".join(f"(?:{each})" for each in found), re.DOTALL)

    def _simple(self, body: str) -> bool:
        if body[:1] == "*" and len(body) > 1 and not _GLOB.search(body, 1) and "/" not in body:
            self._endings = (*self._endings, body[1:])
            return True
        if _GLOB.search(body) or "/" in body.removesuffix("/") or len(body) < 1 + ("/" in body):
            return False
        (self._directories if body.endswith("/") else self._names).add(body.removesuffix("/"))
        return True

    def fits(self, path: str, name: str, *, directory: bool) -> bool:
        if name in self._names or name.endswith(self._endings):
            return True
        if directory and name in self._directories:
            return True
        if self._rest is _NEVER:
            return False
        return self._rest.fullmatch(path + "/" if directory else path) is not None


def _regex(body: str) -> Iterator[str]:
    from pathspec.patterns.gitignore.base import GitIgnorePatternError  # only for odd patterns
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    if _ODD_BRACKET.search(body) or any(each.count("*") > _STARS for each in body.split("/")):
        return
    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(_itself(body))
        if regex is not None:
            re.compile(regex)
            yield _GROUP.sub("(?:", regex)
    except (GitIgnorePatternError, re.error):
        return


def _itself(body: str) -> str:
    """Return a pattern whose regex fits in full what the pattern means, and not what is above."""
    ending = "/" if body.endswith("/") else ""
    stem = body.removesuffix("/")
    above, slash, last = stem.rpartition("/")
    if last in {"*", "**"}:
        stem = above + slash + {"*": "?*", "**": "**/?*"}[last]
    if stem[-1:].isspace():  # the library would strip it; plain spaces that count are escaped
        stem = stem[:-1].removesuffix("\\") + f"[{stem[-1]}]"
    if stem[:1] in {"#", "!"}:
        stem = f"\\{stem}"
    return stem + ending


def _negated(line: str) -> tuple[bool, str]:
    return line.startswith("!"), line.removeprefix("!")


def _without_trailing_spaces(line: str) -> str:
    end = len(line.rstrip(" "))
    before = line[:end]
    escaped = (len(before) - len(before.rstrip("\\"))) % 2 == 1
    return line[: end + 1] if escaped and end < len(line) else before
