"""Reading one name of a directory into the store."""

import os
import stat
from collections.abc import Callable
from typing import Final

from daruma.tools.files.file_hashes import by_status
from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import GONE
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.statuses import Statuses

LARGEST: Final = 128 * 1024 * 1024
"""Bytes; the content of larger files is not kept."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TRIES: Final = 3
"""A file that is written while it is read is read again, and then taken as it is."""


class Reader:
    """Reads what is no directory, each content into ``put``, which returns its digest.

    What ``statuses`` knows is not read again.
    """

    def __init__(
        self,
        put: Callable[[bytes], str],
        *,
        statuses: Statuses | None = None,
        largest: int = LARGEST,
    ) -> None:
        self.put = put
        self.statuses = statuses
        self.largest = largest

    def entry(
        self, folder: int, name: str, status: os.stat_result, above: Parts = ()
    ) -> Entry | None:
        """Return what a name in an open directory stands for; None if it has vanished.

        ``above`` is the directory's path, by which ``statuses`` know the file.
        """
        try:
            if stat.S_ISLNK(status.st_mode):
                return Entry("link", 0, os.readlink(name, dir_fd=folder))
            if not stat.S_ISREG(status.st_mode):
                return special(status)
            return self._file(folder, (*above, name), status)
        except GONE:
            return None
        except OSError:
            return unread(status)

    def _file(self, folder: int, path: Parts, status: os.stat_result) -> Entry | None:
        if self.statuses and (known := self.statuses.known(path, status)):
            return Entry("file", stat.S_IMODE(status.st_mode), known)
        if status.st_size > self.largest:
            return unread(status)
        fd = os.open(path[-1], _READ, dir_fd=folder)
        try:
            return self._opened(fd, path)
        finally:
            os.close(fd)

    def _opened(self, fd: int, path: Parts) -> Entry:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return special(before)
        data, steady = self._content(fd, before)
        if data is None:
            return unread(before)
        digest = self.put(data)
        if steady and self.statuses:
            self.statuses.keep(path, before, digest)
        return Entry("file", stat.S_IMODE(before.st_mode), digest)

    def _content(self, fd: int, before: os.stat_result) -> tuple[bytes | None, bool]:
        """Return what an open file holds, and whether it was left alone all the while."""
        for _ in range(_TRIES):
            data = _whole(fd, before.st_size, self.largest)
            if by_status(before) == by_status(os.fstat(fd)):
                return data, True
            os.lseek(fd, 0, os.SEEK_SET)
            before = os.fstat(fd)
        return data, False


def unread(status: os.stat_result) -> Entry:
    """Return the entry of what is there and not kept."""
    return Entry("unread", stat.S_IMODE(status.st_mode), by_status(status).decode())


def special(status: os.stat_result) -> Entry:
    """Return the entry of a socket, pipe or device."""
    told = f"{stat.S_IFMT(status.st_mode):o},{status.st_rdev}"
    return Entry("special", stat.S_IMODE(status.st_mode), told)


def _whole(fd: int, size: int, largest: int) -> bytes | None:
    """Return all that an open file holds, None if that is more than ``largest``."""
    pieces, got = [], 0
    while got <= largest and (piece := os.read(fd, max(size - got, 0) + 1)):
        pieces.append(piece)
        got += len(piece)
        if got == size:  # one byte more was asked for: this is the end
            break
    return b"".join(pieces) if got <= largest else None
