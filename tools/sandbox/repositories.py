"""Finding the git repositories in a workspace: those in work, bare ones, submodules, worktrees."""

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

FIRST_LOOK: Final = 20_000
"""How many folders are looked into, from the top down, before the first command: about 0.3 s."""

LOOKED_AT: Final = 200
"""How many before each further command, which may have made many to hide those that count."""

MOST: Final = 32
"""How many repositories are protected at most: with so many a command starts in 0.2 s."""

_NOT_LOOKED_INTO: Final = frozenset({".git", "node_modules", "__pycache__"})
_BARE: Final = frozenset({"HEAD", "config", "objects", "refs"})


class Repositories:
    """Which repositories there are; those that were there at first are not forgotten."""

    def __init__(self) -> None:
        self._first: dict[Path, tuple[Path, ...]] = {}

    def of(self, workspace: Path) -> tuple[Path, ...]:
        """Return the folders (or files) that git keeps its own in, relative to the workspace."""
        first = self._first.get(workspace)
        if first is None:
            first = tuple(islice(_found(workspace, FIRST_LOOK), MOST))
            return self._first.setdefault(workspace, first)
        return tuple(dict.fromkeys([*first, *islice(_found(workspace, LOOKED_AT), MOST)]))


def _found(workspace: Path, most: int) -> Iterator[Path]:
    for at, names in _folders(workspace, Path(), most):
        if names.keys() >= _BARE:
            yield at
        if ".git" in names:
            yield at / ".git"
            if names[".git"]:
                yield from _inner(workspace, at / ".git")


def _inner(workspace: Path, git: Path) -> Iterator[Path]:
    """Yield the repositories of submodules: they lie in that of the one around them."""
    for at, names in _folders(workspace, git / "modules", LOOKED_AT):
        if names.keys() >= _BARE:
            yield at


def _folders(workspace: Path, top: Path, most: int) -> Iterator[tuple[Path, dict[str, bool]]]:
    """Yield folders, the nearest first, with what is in each and whether that is a folder."""
    waiting = deque([top])
    while waiting and most:
        at, most = waiting.popleft(), most - 1
        names = _names(workspace / at)
        yield at, names
        waiting += [
            at / name for name in sorted(names) if names[name] and name not in _NOT_LOOKED_INTO
        ]


def _names(folder: Path) -> dict[str, bool]:
    try:
        with os.scandir(folder) as entries:
            return {each.name: each.is_dir(follow_symlinks=False) for each in entries}
    except OSError:
        return {}
