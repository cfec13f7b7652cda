"""Which ignore patterns hold in which directory, and what they say of the names in it."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.patterns import Patterns


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
        for path in paths:
            split = tuple(path.split("/"))
            self.tracked.add(path)
            self._above_tracked.update(split[:size] for size in range(1, len(split)))

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
