"""Reading one name of a directory into the store."""

import os
import stat
from collections.abc import Callable
from typing import Final

from daruma.tools.files.file_hashes import by_status
from daruma.tools.snapshots.beneath import GONE
from daruma.tools.snapshots.entry import Entry

LARGEST: Final = 128 * 1024 * 1024
"""Bytes; the content of larger files is not kept."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TRIES: Final = 3
"""A file that is written while it is read is read again, and then taken as it is."""


class Reader:
    """Reads what is no directory, each content into ``put``, which returns its digest."""

    def __init__(self, put: Callable[[bytes], str], *, largest: int = LARGEST) -> None:
        self.put = put
        self.largest = largest

    def entry(self, folder: int, name: str, status: os.stat_result) -> Entry | None:
        """Return what a name in an open directory stands for; None if it has vanished."""
        mode = stat.S_IMODE(status.st_mode)
        try:
            if stat.S_ISLNK(status.st_mode):
                return Entry("link", 0, os.readlink(name, dir_fd=folder))
            if not stat.S_ISREG(status.st_mode):
                return special(status)
            return self._file(folder, name, status)
        except GONE:
            return None
        except OSError:
            return Entry("unread", mode, by_status(status).decode())

    def _file(self, folder: int, name: str, status: os.stat_result) -> Entry | None:
        if status.st_size > self.largest:
            return Entry("unread", stat.S_IMODE(status.st_mode), by_status(status).decode())
        fd = os.open(name, _READ, dir_fd=folder)
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                return special(before)
            data = self._content(fd)
        finally:
            os.close(fd)
        if data is None:
            return Entry("unread", stat.S_IMODE(before.st_mode), by_status(before).decode())
        return Entry("file", stat.S_IMODE(before.st_mode), self.put(data))

    def _content(self, fd: int) -> bytes | None:
        for _ in range(_TRIES):
            before = os.fstat(fd)
            data = _whole(fd, before.st_size, self.largest)
            if data is None or by_status(before) == by_status(os.fstat(fd)):
                break
            os.lseek(fd, 0, os.SEEK_SET)
        return data


def special(status: os.stat_result) -> Entry:
    """Return the entry of a socket, pipe or device."""
    told = f"{stat.S_IFMT(status.st_mode):o},{status.st_rdev}"
    return Entry("special", stat.S_IMODE(status.st_mode), told)


def _whole(fd: int, size: int, largest: int) -> bytes | None:
    """Return all that an open file holds, None if that is more than ``largest``."""
    pieces, got, piece = [], 0, b""
    while got <= largest and (piece := os.read(fd, max(size - got, 0) + 1)):
        pieces.append(piece)
        got += len(piece)
    return b"".join(pieces) if got <= largest else None
