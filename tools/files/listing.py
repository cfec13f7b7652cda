"""What lies in directories beneath a root, without following links and without end."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from daruma.tools.errors import ToolError
from daruma.tools.files.files_beneath import FilesBeneath
from daruma.tools.files.openers import DIRECTORY
from daruma.tools.files.os_errors import explained

Kind = Literal["file", "directory", "link", "special"]

CACHES: Final = frozenset({
    ".cache", ".eggs", ".hypothesis", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox",
    ".venv", "__pycache__", "node_modules", "venv",
})  # fmt: skip
"""Directories that hold what tools made or fetched, by name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a directory; `path` is relative to the root."""

    path: str
    kind: Kind


def entries(files: FilesBeneath, path: str) -> list[Entry]:
    """The entries of a directory by name, `.git` left out. Raises as `FilesBeneath` does."""
    parts = files.parts(path)
    with explained(path), files.opened(parts, DIRECTORY) as (fd, location), os.scandir(fd) as found:
        named = sorted((entry.name, _kind(entry)) for entry in found)
    return [Entry("/".join((*location, name)), kind) for name, kind in named if name != ".git"]


def walk(files: FilesBeneath, path: str, skip: Collection[str] = ()) -> Iterator[Entry]:
    """Everything beneath a directory, parents first, links not followed.

    Directories named in `skip` are reported but not entered. What vanishes or may not be read on
    the way is passed over; only `path` itself must be a readable directory.
    """
    waiting = entries(files, path)[::-1]
    while waiting:
        entry = waiting.pop()
        yield entry
        if entry.kind == "directory" and entry.path.rpartition("/")[2] not in skip:
            try:
                waiting += entries(files, entry.path)[::-1]
            except ToolError:
                continue


def _kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "special"
