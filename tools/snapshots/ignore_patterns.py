"""Ignore patterns as git reads them: which hold in a directory, and what they say of a name."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby

from daruma.tools.files.paths import Parts

# --- One file of ignore patterns, as git reads it.
#
# Paths and patterns are Latin-1 text of their bytes, since to git ``?`` is one byte.

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


# --- Which ignore patterns hold in which directory, and what they say of the names in it.


@dataclass(frozen=True)
class Source:
    """Patterns that hold for what lies beneath ``base``, a directory of the workspace.

    All texts are Latin-1 of bytes. ``lead`` is put before a path of the workspace, for patterns
    that stand above it (``pkg/``). ``last`` patterns count more than those of directories further
    down. ``alone``: in ``base`` begins a repository of its own, in which no pattern of the
    directories above it holds.
    """

    base: str
    lines: tuple[str, ...]
    lead: str = ""
    last: bool = False
    alone: bool = False

    @cached_property
    def patterns(self) -> Patterns:
        """The lines, read once."""
        return Patterns(self.lines)

    def verdict(self, path: str, *, directory: bool) -> bool | None:
        """Say whether a path of the workspace is ignored; None where no pattern fits."""
        inside = path[len(self.base) + 1 :] if self.base else path
        return self.patterns.verdict(self.lead + inside, directory=directory)


@dataclass(frozen=True)
class _Scope:
    """What holds in one directory; ``closed``: nothing in it counts but what git tracks."""

    sources: tuple[Source, ...] = ()
    closed: bool = False

    def entered(self, own: Iterable[Source], *, closed: bool) -> "_Scope":
        found = self.sources
        for each in own:
            if each.alone:
                found = tuple(kept for kept in found if kept.last or kept.base == each.base)
            found = (*found, each)
        return _Scope(tuple(sorted(found, key=lambda source: source.last)), closed)

    def ignored(self, path: str, *, directory: bool) -> bool:
        for source in reversed(self.sources):
            verdict = source.verdict(path, directory=directory)
            if verdict is not None:
                return verdict
        return False


class Scopes:
    """The patterns and tracked files of a workspace, asked path by path.

    What holds in a directory is added before anything in it is asked about.
    """

    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.tracked: set[str] = set()
        self._above_tracked: set[Parts] = set()
        self._by_base: dict[str, list[Source]] = {}
        self._scopes: dict[Parts, _Scope] = {}

    def add(self, source: Source) -> None:
        """Add patterns; they count more than those added before."""
        self.sources.append(source)
        self._by_base.setdefault(source.base, []).append(source)

    def track(self, paths: Iterable[str]) -> None:
        """Add files that count though a pattern fits them."""
        new = set(paths)
        self.tracked |= new
        self.look_into(new)

    def look_into(self, paths: Iterable[str]) -> None:
        """Leave no directory alone that is on the way to one of these files."""
        for path in paths:
            split = tuple(path.split("/"))
            self._above_tracked.update(split[:size] for size in range(1, len(split)))

    def ignored(self, path: str) -> bool:
        """Say whether patterns fit a file, tracked or not, or a directory above it."""
        return self._ignored(tuple(path.split("/")), directory=False)

    def outside(self, path: Parts, *, directory: bool) -> bool:
        """Say whether a path is left alone, given that the directories above it are not."""
        if directory and path in self._above_tracked:
            return False
        if not directory and self.tracked and "/".join(path) in self.tracked:
            return False
        return self._ignored(path, directory=directory)

    def _ignored(self, path: Parts, *, directory: bool) -> bool:
        scope = self._scope(path[:-1])
        if scope.closed:
            return True
        return path[-1] != ".git" and scope.ignored(latin("/".join(path)), directory=directory)

    def _scope(self, folder: Parts) -> _Scope:
        if folder not in self._scopes:
            above = self._scope(folder[:-1]) if folder else _Scope()
            closed = above.closed or (bool(folder) and self._ignored(folder, directory=True))
            own = self._by_base.get(latin("/".join(folder)), [])
            self._scopes[folder] = above.entered(own, closed=closed) if own or closed else above
        return self._scopes[folder]


def latin(path: str) -> str:
    """Return a path as Latin-1 text of its bytes."""
    return path if path.isascii() else os.fsencode(path).decode("latin-1")


# --- What snapshots leave alone, frozen as it was when a task began.


@dataclass(frozen=True)
class Rules:
    """Which paths are outside of snapshots; equal rules have equal encodings.

    ``repositories`` are the ``.git`` that are git's own, ``tracked`` the files that count though
    patterns fit them, since git tracks them. ``sources`` that come later count more.
    """

    sources: tuple[Source, ...] = ()
    repositories: frozenset[str] = frozenset()
    tracked: frozenset[str] = frozenset()

    @cached_property
    def _scopes(self) -> Scopes:
        scopes = Scopes()
        scopes.track(self.tracked)
        for source in self.sources:
            scopes.add(source)
        return scopes

    def outside(self, path: Parts, *, directory: bool) -> bool:
        """Say whether a path is left alone, given that the directories above it are not."""
        return self._scopes.outside(path, directory=directory)

    def repository(self, path: Parts) -> bool:
        """Say whether a path is a ``.git`` that was there when the rules were frozen."""
        return path[-1] == ".git" and "/".join(path) in self.repositories

    def covers(self, path: Parts, *, directory: bool) -> bool:
        """Say whether a path belongs to snapshots, and so do all directories above it."""
        above = (path[:size] for size in range(1, len(path)))
        closed = any(self.outside(each, directory=True) or self.repository(each) for each in above)
        return not closed and not self.outside(path, directory=directory)

    def encoded(self) -> bytes:
        """Return the rules as bytes to store."""
        plain = {
            "sources": [asdict(each) for each in self.sources],
            "repositories": sorted(self.repositories),
            "tracked": sorted(self.tracked),
        }
        return json.dumps(plain, separators=(",", ":")).encode()


def decoded(data: bytes) -> Rules:
    """Return the rules that were stored."""
    plain = json.loads(data)
    sources = (Source(**{**each, "lines": tuple(each["lines"])}) for each in plain["sources"])
    return Rules(tuple(sources), frozenset(plain["repositories"]), frozenset(plain["tracked"]))
