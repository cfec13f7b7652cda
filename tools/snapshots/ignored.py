"""What snapshots leave alone, frozen as it was when a task began."""

import json
from dataclasses import asdict, dataclass
from functools import cached_property

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.scopes import Scopes, Source


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
