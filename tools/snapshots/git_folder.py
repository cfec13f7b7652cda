"""Finding a repository's own folder, and the patterns that git reads outside of the files."""

import os
import stat
from pathlib import Path
from typing import Final

from daruma.tools.snapshots.patterns import lines_of

_LARGEST: Final = 1024 * 1024
"""Bytes; git's own files of patterns and pointers are never near that."""


def repository_above(workspace: Path) -> Path | None:
    """Return the nearest folder, from the workspace upwards, that holds a ``.git``."""
    return next((each for each in (workspace, *workspace.parents) if is_there(each / ".git")), None)


def excluded_in(repository: Path) -> tuple[str, ...]:
    """Return the patterns of a repository's ``info/exclude``."""
    return patterns_in(_common_folder(repository / ".git") / "info" / "exclude")


def patterns_in(path: Path, folder: int | None = None) -> tuple[str, ...]:
    """Return the patterns of a file; none where it is not there, no file, or may not be read."""
    return lines_of(_content(path, folder))


def is_there(path: Path) -> bool:
    """Say whether a name is there, also where it may not be looked at."""
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def _common_folder(git: Path) -> Path:
    """Return where a worktree's or submodule's repository keeps what all its worktrees share."""
    pointer = _content(git).strip()
    own = git.parent / os.fsdecode(pointer[8:]) if pointer.startswith(b"gitdir: ") else git
    common = _content(own / "commondir").strip()
    return own / os.fsdecode(common) if common else own


def _content(path: Path, folder: int | None = None) -> bytes:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | (os.O_NOFOLLOW if folder is not None else 0), dir_fd=folder)
    except (OSError, ValueError):
        return b""
    try:
        status = os.fstat(fd)
        regular = stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST
        return os.read(fd, _LARGEST) if regular else b""
    except OSError:
        return b""
    finally:
        os.close(fd)
