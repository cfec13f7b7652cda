"""What snapshots leave alone: ignore patterns as git reads them, and those of a workspace now."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Final

from daruma.state.data_dir import data_dir
from daruma.tools.commands import CannotRun, run_git
from daruma.tools.files import Parts, common_folder, content_of, read_index, repository_above
from daruma.tools.snapshots._store import directory_opened

# --- One file of ignore patterns, as git reads it.
#
# Paths and patterns are Latin-1 text of their bytes, since to git ``?`` is one byte.

_GLOB = re.compile(r"[*?\[\\]")

_LONGEST = 4096
"""Bytes of a pattern: as long as the longest path. A longer one fits nothing here."""

_LONGEST_NAME = 255
"""Bytes of a name in a directory."""

_MOST = 2_000
"""Patterns of one file that are no mere names and endings; what is beyond fits nothing here."""

_MOST_RUNS = 200
"""Runs of such patterns, each of which takes back what is before it: each is tried by itself."""

_NEVER = re.compile(r"(?!)")


def lines_of(data: bytes) -> tuple[str, ...]:
    """Return the patterns of a file without comments and without what ends them."""
    text = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    lines = (line.removesuffix("\r").partition("\0")[0] for line in text.split("\n"))
    trimmed = (_without_trailing_spaces(line) for line in lines if not line.startswith("#"))
    return tuple(line for line in trimmed if line)


class Patterns:
    """Patterns in order: the last one that fits a path says whether it is ignored.

    Most are names or endings of names, and are looked up. Each knows its run: patterns without one
    of the other kind, ignored or not, between them; the last run that fits decides.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._ignored: list[bool] = []
        self._names: dict[str, int] = {}
        self._directories: dict[str, int] = {}
        self._endings: dict[str, int] = {}
        rest: list[tuple[int, str]] = []
        pairs = ((line.startswith("!"), line.removeprefix("!")) for line in lines)
        for negated, run in groupby(pairs, key=lambda each: each[0]):
            at = len(self._ignored)
            self._ignored.append(not negated)
            rest += [(at, body) for _, body in run if not self._simple(body, at)]
        self._lengths = sorted({len(each) for each in self._endings if len(each) <= _LONGEST_NAME})
        found: list[tuple[int, re.Pattern[str], re.Pattern[str]]] = []
        for at, each in groupby(rest[:_MOST], key=lambda each: each[0]):
            bodies = [body for _, body in each]
            files = _any_of(body for body in bodies if not body.endswith("/"))
            found.append((at, files, _any_of(body[:-1] for body in bodies if body.endswith("/"))))
        self._rest = found[:_MOST_RUNS][::-1]

    def _simple(self, body: str, at: int) -> bool:
        if body[:1] == "*" and len(body) > 1 and not _GLOB.search(body, 1) and "/" not in body:
            self._endings[body[1:]] = at
            return True
        if _GLOB.search(body) or "/" in body.removesuffix("/") or len(body) < 1 + ("/" in body):
            return False
        known = self._directories if body.endswith("/") else self._names
        known[body.removesuffix("/")] = at
        return True

    def verdict(self, path: str, *, directory: bool) -> bool | None:
        """Say whether a path is ignored; None where no pattern fits it, whatever fits above it."""
        name = path.rpartition("/")[2]
        last = max(
            self._names.get(name, -1),
            self._directories.get(name, -1) if directory else -1,
            *(self._endings.get(name[-size:], -1) for size in self._lengths if size <= len(name)),
            -1,
        )
        for at, files, directories in self._rest:
            if at <= last:
                break
            if files.fullmatch(path) or (directory and directories.fullmatch(path)):
                return self._ignored[at]
        return self._ignored[last] if last >= 0 else None


def _any_of(bodies: Iterable[str]) -> re.Pattern[str]:
    found = [regex for body in bodies if len(body) <= _LONGEST and (regex := _regex(body))]
    return re.compile("|".join(found), re.DOTALL) if found else _NEVER


# --- A pattern as a regular expression that takes linear time (SE-07).
#
# Where a star is followed by something, the first place where that fits is as good as any later
# one. So what stands between two stars is an atomic group: nothing that has fitted is tried again.

_SEGMENT: Final = "[^/]"
_STAR: Final = f"{_SEGMENT}*"


def _regex(body: str) -> str:
    """Return what fits in full the paths that git's ``wildmatch`` fits; empty for none."""
    pattern = body.removeprefix("/")
    anchored = "/" in body
    try:
        blocks = _blocks(pattern, paths=anchored) if pattern else []
    except _FitsNothing:
        return ""
    if not blocks:
        return ""
    *between, last = [before + _pieces(tokens) for before, tokens in blocks]
    lead = "" if anchored else f"(?:{_STAR}/)*+"
    return lead + "".join(f"(?>{each})" for each in between) + last


class _FitsNothing(Exception):
    """Raised for a pattern that git takes for broken: it fits nothing."""


def _blocks(pattern: str, *, paths: bool) -> list[tuple[str, list[str]]]:
    """Return what stands between the ``**`` that stand for folders, with what each begins with."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    at = 0
    first = _GLOB.search(pattern)
    while at < len(pattern):
        char, tokens = pattern[at], blocks[-1][1]
        if char == "*":
            end = len(pattern) - len(pattern[at:].lstrip("*"))
            rest = pattern[end : end + 2]
            # git reads on behind the plain beginning of a pattern as if nothing were before it.
            opens = at == 0 or pattern[at - 1] == "/" or (first and first.start() == at)
            if not (paths and end - at > 1 and opens and (rest[:1] in {"", "/"} or rest == "\\/")):
                tokens.append("*")
            elif not rest:
                tokens.append("**")
            else:
                blocks.append((f"(?:{_STAR}/)" + ("*?" if rest[0] == "/" else "+?"), []))
                end += rest.index("/") + 1
            at = end
        elif char == "[":
            regex, at = _bracket(pattern, at + 1)
            tokens.append(regex)
        elif char == "?":
            tokens.append(_SEGMENT)
            at += 1
        else:
            at += char == "\\"
            if at == len(pattern):
                raise _FitsNothing
            tokens.append(re.escape(pattern[at]))
            at += 1
    return blocks


def _pieces(tokens: Sequence[str]) -> str:
    """Return the tokens of one block, each star and what follows it to the next one atomic."""
    pieces = [""]
    for piece in tokens:
        if piece == "*":
            pieces.append("")
        else:
            pieces[-1] += ".*" if piece == "**" else piece
    first, *others = pieces
    if not others:
        return first
    *middle, last = others
    return first + "".join(f"(?>{_STAR}?{each})" for each in middle) + _STAR + last


_CLASSES: Final = {
    "alnum": r"[0-9A-Za-z]",
    "alpha": r"[A-Za-z]",
    "blank": r"[ \t]",
    "cntrl": r"[\x00-\x1f\x7f]",
    "digit": r"[0-9]",
    "graph": r"[!-~]",
    "lower": r"[a-z]",
    "print": r"[ -~]",
    "punct": r"[!-/:-@\[-`{-~]",
    "space": r"[ \t-\r]",
    "upper": r"[A-Z]",
    "xdigit": r"[0-9A-Fa-f]",
}


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """Return the characters that a bracket stands for, and where it ends."""
    negated = pattern[at : at + 1] in {"!", "^"}
    at += negated
    chars: set[str] = set()
    before = ""
    first = True
    while first or pattern[at : at + 1] != "]":
        first = False
        found, before, at = _member(pattern, at, before)
        chars |= found
    chars = (set(map(chr, range(256))) - chars if negated else chars) - {"/"}
    return f"[{''.join(map(re.escape, sorted(chars)))}]" if chars else "(?!)", at + 1


def _member(pattern: str, at: int, before: str) -> tuple[set[str], str, int]:
    """Return what the member of a bracket adds, what a range could begin with, and its end."""
    char = pattern[at : at + 1]
    if char == "[" and pattern[at + 1 : at + 2] == ":":
        end = pattern.find("]", at + 2)
        name = pattern[at + 2 : end - 1]
        if end < 0 or (pattern[end - 1] == ":" and end > at + 2 and name not in _CLASSES):
            raise _FitsNothing
        if pattern[end - 1] == ":" and end > at + 2:
            return {c for c in map(chr, range(256)) if re.match(_CLASSES[name], c)}, "", end + 1
        return {"["}, "[", at + 1
    is_range = char == "-" and before and pattern[at + 1 : at + 2] not in {"", "]"}
    at += bool(is_range)
    at += pattern[at : at + 1] == "\\"
    char = pattern[at : at + 1]
    if not char:
        raise _FitsNothing
    if is_range:
        return {*map(chr, range(ord(before), ord(char) + 1))}, "", at + 1
    return {char}, char, at + 1


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
    patterns fit them, since git tracks them. ``sources`` that come later count more. ``ignored``
    are paths that were left alone when the rules were frozen, each with what tells a change.
    """

    sources: tuple[Source, ...] = ()
    repositories: frozenset[str] = frozenset()
    tracked: frozenset[str] = frozenset()
    ignored: Mapping[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def _scopes(self) -> Scopes:
        scopes = Scopes()
        scopes.tracked |= self.tracked
        scopes.look_into(self.tracked)
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
            "ignored": dict(sorted(self.ignored.items())),
        }
        return json.dumps(plain, separators=(",", ":")).encode()


def decoded(data: bytes) -> Rules:
    """Return the rules that were stored."""
    plain = json.loads(data)
    sources = (Source(**{**each, "lines": tuple(each["lines"])}) for each in plain["sources"])
    known = frozenset(plain["repositories"]), frozenset(plain["tracked"])
    return Rules(tuple(sources), *known, plain.get("ignored", {}))


# --- The patterns that git reads outside of ignore files; git itself is not run in a workspace.

_OF_THE_USER: Final = ("config", "-z", "--type=path", "--get", "core.excludesFile")
_OF_A_FILE: Final = ("config", "--file", "-", "--no-includes", *_OF_THE_USER[1:])


def patterns_in(path: Path, folder: int | None = None) -> tuple[str, ...]:
    """Return the patterns of a file; none where it is not there, no file, or may not be read."""
    return lines_of(content_of(path, folder))


def excluded_in(repository: Path) -> tuple[str, ...]:
    """Return the patterns of a repository's ``info/exclude``."""
    return patterns_in(common_folder(repository / ".git") / "info" / "exclude")


def excludes_file(folder: Path) -> Path:
    """Return the file of patterns that the repository around a folder names, else the user's own.

    The repository's settings are given to git as a text, of which nothing is included.
    """
    repository = repository_above(folder)
    settings = content_of(common_folder(repository / ".git") / "config") if repository else b""
    own = b"excludesfile" in settings.lower()
    if found := (own and _told(*_OF_A_FILE, data=settings)) or _told(*_OF_THE_USER):
        return folder / os.fsdecode(found)
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 - Path.expanduser raises without a home
    return Path(home) / "git" / "ignore"


def _told(*arguments: str, data: bytes = b"") -> bytes:
    try:
        done = run_git(*arguments, folder=Path("/"), data=data, own_settings=True)
    except CannotRun:
        return b""
    return done.stdout.rstrip(b"\0") if done.returncode == 0 else b""


# --- Reading the ignore rules of a workspace as they are now.


def frozen(top: int, workspace: Path, exclude: Sequence[str] = ()) -> Rules:
    """Return the rules that hold beneath an open workspace now.

    They are those of git: ``core.excludesFile``, ``info/exclude``, every ``.gitignore``; they hold
    as well where there is no repository. What a repository around the workspace says does not
    count where it ignores the whole workspace. ``exclude`` are lines as in a ``.gitignore`` at the
    root; Daruma's own data is always left alone.
    """
    freezing = _Freezing(top, Path(os.path.realpath(workspace)))
    freezing.outer()
    if last := (*lines_of(os.fsencode("\n".join(exclude))), *freezing.own_data()):
        freezing.scopes.add(Source("", last, last=True))
    freezing.inner()
    scopes = freezing.scopes
    tracked = frozenset(each for each in freezing.tracked if scopes.ignored(each))
    return Rules(tuple(scopes.sources), frozenset(freezing.found), tracked)


class _Freezing:
    """One look for rules, directory by directory, into none that is ignored."""

    def __init__(self, top: int, workspace: Path) -> None:
        self.top = top
        self.workspace = workspace
        self.everywhere = patterns_in(excludes_file(workspace))
        self.scopes = Scopes()
        self.found: set[str] = set()
        self.tracked: set[str] = set()

    def outer(self) -> None:
        """Add what holds in all of the workspace."""
        here, repository = self.workspace, repository_above(self.workspace)
        sources = [Source("", self.everywhere, _lead(here, repository))]
        if repository:  # what it says, and the directories between it and the workspace
            sources.append(Source("", excluded_in(repository), _lead(here, repository)))
            around = [each for each in reversed(here.parents) if each.is_relative_to(repository)]
            lines = [(each, patterns_in(each / ".gitignore")) for each in around]
            sources += [Source("", found, _lead(here, each)) for each, found in lines]
        if any(_ignores_all(each) for each in sources):
            sources, repository = [Source("", self.everywhere)], None
        for source in sources:
            if source.lines:
                self.scopes.add(source)
        if repository:
            inside = self.workspace.relative_to(repository)
            self._index(repository, "".join(f"{part}/" for part in inside.parts))

    def own_data(self) -> tuple[str, ...]:
        """Return the pattern of Daruma's data where it lies inside of the workspace."""
        data = Path(os.path.realpath(data_dir()))
        if data == self.workspace or not data.is_relative_to(self.workspace):
            return ()
        inside = latin(os.fspath(data.relative_to(self.workspace)))
        return ("/" + re.sub(r"([*?\[\\ ])", r"\\\1", inside) + "/",)

    def inner(self) -> None:
        """Add what directories of the workspace say."""
        waiting: list[Parts] = [()]
        while waiting:
            path = waiting.pop()
            with suppress(OSError):
                waiting += self._directory(path)

    def _directory(self, path: Parts) -> list[Parts]:
        with directory_opened(self.top, path) as fd:
            with os.scandir(fd) as listed:
                kinds = {each.name: each.is_dir(follow_symlinks=False) for each in listed}
            if ".git" in kinds:
                self._repository(path)
            if kinds.get(".gitignore") is False and (lines := patterns_in(Path(".gitignore"), fd)):
                self.scopes.add(Source(latin("/".join(path)), lines))
        inside = ((*path, name) for name, folder in kinds.items() if folder and name != ".git")
        return [each for each in inside if not self.scopes.outside(each, directory=True)]

    def _repository(self, path: Parts) -> None:
        self.found.add("/".join((*path, ".git")))
        if not path:
            return  # what it says holds everywhere, and is known
        folder = self.workspace.joinpath(*path)
        base = latin("/".join(path))
        self.scopes.add(Source(base, self.everywhere, alone=True))
        self.scopes.add(Source(base, excluded_in(folder)))
        self._index(folder, "", "/".join(path) + "/")

    def _index(self, repository: Path, lead: str, base: str = "") -> None:
        """Note what is tracked beneath ``lead``: folders with such files are looked into."""
        files = (each for each in read_index(repository / ".git").files if each.startswith(lead))
        found = {base + each.removeprefix(lead) for each in files}
        self.scopes.look_into(found)
        self.tracked |= found


def _lead(workspace: Path, folder: Path | None) -> str:
    if folder is None or folder == workspace:
        return ""
    return latin(os.fspath(workspace.relative_to(folder))) + "/"


def _ignores_all(source: Source) -> bool:
    """Say whether patterns above the workspace ignore it, or a directory that it lies in."""
    parts = source.lead.rstrip("/").split("/") if source.lead else []
    above = ("/".join(parts[:size]) for size in range(1, len(parts) + 1))
    return any(source.patterns.verdict(each, directory=True) for each in above)
