"""What lies in a folder, read in a way of its own: os.walk and lstat, nothing of the project."""

# Names are bytes here, which pathlib does not know.
# ruff: noqa: PTH115, PTH118, PTH123

import hashlib
import os
import stat
from pathlib import Path
from typing import TypeAlias

Thing: TypeAlias = tuple[str, int, str]
"""Kind, permission bits, content: a digest, a link's target, the type of what is special."""

State: TypeAlias = dict[bytes, Thing]
"""Paths relative to the folder to what is there; the folder itself is ``.``."""


def read(folder: Path) -> State:
    """Return all that lies in a folder, git's own files included."""
    root = os.fsencode(folder)
    state = {b".": thing(root)}
    for at, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(at, name)
            state[os.path.relpath(path, root)] = thing(path)
    return state


def thing(path: bytes) -> Thing:
    """Return what is at a path."""
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return "link", 0, os.fsdecode(os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return "directory", mode, ""
    if not stat.S_ISREG(status.st_mode):
        return "special", mode, oct(stat.S_IFMT(status.st_mode))
    with open(path, "rb") as file:
        return "file", mode, hashlib.sha256(file.read()).hexdigest()


def parents(path: bytes) -> list[bytes]:
    """Return the directories above a path, outermost first, without the folder itself."""
    pieces = path.split(b"/")
    return [b"/".join(pieces[:size]) for size in range(1, len(pieces))]
