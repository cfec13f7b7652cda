"""Which parts of a workspace's tree say what it is, and which come and go by themselves."""

import re
from typing import Final, Literal

from daruma.tools.files.paths import Parts

Place = Literal["counts", "entered", "left out"]

REMADE: Final = frozenset({".mypy_cache", ".pytest_cache", ".ruff_cache"})
"""Directories that checkers write whenever they run, to read their own results from."""

FETCHED: Final = frozenset({".nox", ".tox", ".venv", "node_modules", "venv"})
"""Directories of dependencies: many files, seldom edited, slow to read."""

_COMPILED = re.compile(r".*\.pyc(?:\.\d+)?", re.DOTALL)
"""With a number while it is being written."""

_GIT_CONTROL: Final = frozenset(
    {"HEAD", "attributes", "commondir", "config", "config.worktree", "gitdir", "packed-refs"}
)
_GIT_HOLDS_CONTROL: Final = frozenset({"hooks", "info", "modules", "refs", "worktrees"})
_GIT_DATA: Final = frozenset({"logs", "lfs", "objects"})


def place(parts: Parts, *, directory: bool) -> Place:
    """Say whether an entry counts, is only entered for what lies in it, or is left out.

    Python's compiled files are made anew by every run. Of git's own only what makes git run
    something counts, its configuration and hooks, and where its branches point, which says what a
    push would push: looking at a repository rewrites the rest.
    """
    name = parts[-1]
    if directory and name in REMADE:
        return "left out"
    if ".git" in parts[:-1]:
        return _place_in_git(parts[_last_git(parts) + 1 :], directory=directory)
    if directory:
        return "entered" if name == "__pycache__" else "counts"
    compiled = "__pycache__" in parts[-2:-1] and _COMPILED.fullmatch(name)
    return "left out" if compiled else "counts"


def counts(path: str, *, directory: bool = False) -> bool:
    """Say whether what lies at a path (with ``/``) is more than what comes and goes by itself."""
    parts = tuple(path.split("/"))
    inside = all(place(parts[:n], directory=True) != "left out" for n in range(1, len(parts)))
    return inside and place(parts, directory=directory) == "counts"


def is_fetched(parts: Parts) -> bool:
    """Whether an entry lies in a directory of dependencies."""
    return not FETCHED.isdisjoint(parts[:-1])


def _place_in_git(inside: Parts, *, directory: bool) -> Place:
    if inside[0] != "logs" and not {"hooks", "refs"}.isdisjoint(inside[:-1]):
        return "counts"
    if directory:
        control = inside[0] in _GIT_HOLDS_CONTROL and _GIT_DATA.isdisjoint(inside)
        return "entered" if control else "left out"
    return "counts" if inside[-1] in _GIT_CONTROL else "left out"


def _last_git(parts: Parts) -> int:
    return max(at for at, part in enumerate(parts[:-1]) if part == ".git")
