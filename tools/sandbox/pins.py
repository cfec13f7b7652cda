"""Open places in a workspace, to be mounted where they are: what is mounted can not be renamed.

They are opened step by step without following links, so that nothing that a command swaps meanwhile
is taken for them.
"""

import os
import stat
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from daruma.tools.errors import CommandRefused

_PINNED: Final = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Pinned:
    """An open place in the workspace, and whether commands may write to it."""

    fd: int
    path: Path
    writable: bool


class Pins:
    """Places by their path relative to ``workspace``. ``stack`` closes their descriptors.

    Raises :class:`~daruma.tools.errors.CommandRefused` when one that is there can not be opened:
    without it the command would not be confined as promised.
    """

    def __init__(self, workspace: Path, stack: ExitStack) -> None:
        self._workspace, self._stack = workspace, stack
        self._root = self._open(None, workspace)
        self._found: dict[Path, Pinned] = {}

    def pin(self, inside: Path, *, writable: bool) -> int | None:
        """Pin a place and, writable, all folders on the way; None if it is not there or a link.

        What is pinned once to be read only stays so. The workspace itself is mounted by others.
        """
        if not inside.parts:
            return self._root
        fd = self.around(inside)
        return None if fd is None else self._pin(fd, inside, writable=writable)

    def around(self, inside: Path) -> int | None:
        """Pin the folders on the way to a place, and return the last of them."""
        fd = self._root
        for folder in [*inside.parents][-2::-1]:
            fd = None if fd is None else self._pin(fd, folder, writable=True)
        return fd

    def all(self) -> list[Pinned]:
        """Return all of them, those that hold others first."""
        return sorted(self._found.values(), key=lambda each: len(each.path.parts))

    def _pin(self, folder: int, inside: Path, *, writable: bool) -> int | None:
        known = self._found.get(inside)
        fd = known.fd if known else self._open(folder, inside)
        if fd is not None:
            pinned = known or Pinned(fd, self._workspace / inside, writable)
            self._found[inside] = replace(pinned, writable=pinned.writable and writable)
        return fd

    def _open(self, folder: int | None, path: Path) -> int | None:
        try:
            fd = os.open(path if folder is None else path.name, _PINNED, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise CommandRefused(f"{path} can not be protected: {error.strerror}") from error
        self._stack.callback(os.close, fd)
        status = os.fstat(fd)
        return None if stat.S_ISLNK(status.st_mode) or _is_closed(status) else fd


def _is_closed(status: os.stat_result) -> bool:
    """Return whether commands, which have no rights beyond the user's, can not enter a folder."""
    if not stat.S_ISDIR(status.st_mode) or status.st_uid == os.geteuid():
        return False
    of_group = status.st_gid in {os.getegid(), *os.getgroups()}
    return not status.st_mode & (stat.S_IXGRP if of_group else stat.S_IXOTH)
