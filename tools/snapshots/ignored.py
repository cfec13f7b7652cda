"""What snapshots leave alone, frozen as it was when a task began."""

import json
from dataclasses import dataclass

from daruma.tools.files.paths import Parts


@dataclass(frozen=True)
class Rules:
    """Which paths are outside of snapshots; equal rules have equal encodings.

    ``repositories`` are the ``.git`` that are git's own.
    """

    repositories: frozenset[str] = frozenset()

    def outside(self, path: Parts, *, directory: bool) -> bool:
        """Say whether a path is left alone, given that the directories above it are not."""
        return False

    def repository(self, path: Parts) -> bool:
        """Say whether a path is a ``.git`` that was there when the rules were frozen."""
        return path[-1] == ".git" and "/".join(path) in self.repositories

    def encoded(self) -> bytes:
        """Return the rules as bytes to store."""
        return json.dumps({"repositories": sorted(self.repositories)}).encode()


def decoded(data: bytes) -> Rules:
    """Return the rules that were stored."""
    plain = json.loads(data)
    return Rules(frozenset(plain["repositories"]))
