"""Single entries of an open directory: looked at, made, removed, given a mode.

No link is followed, and nothing that came up meanwhile is replaced where the system can prevent it.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from daruma.tools.files.file_hashes import by_status
from daruma.tools.snapshots.beneath import GONE
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.reading import Reader

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_ONLY: Final[int] = getattr(os, "O_PATH", 0)
_NO_HARD_LINKS: Final = {errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS}
"""What a file system says that knows none."""


def no_step() -> None:
    """Do nothing between two operations."""


def status_of(folder: int, name: str) -> os.stat_result | None:
    """Return what the system says of a name, None if it is not there."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except GONE:
        return None


def entry_of(folder: int, name: str) -> Entry | None:
    """Return what a name stands for now, None for nothing; of a directory its mode only."""
    status = status_of(folder, name)
    if status is None:
        return None
    if stat.S_ISDIR(status.st_mode):
        return Entry("directory", stat.S_IMODE(status.st_mode), "")
    return Reader(lambda data: hashlib.sha256(data).hexdigest()).entry(folder, name, status)


def set_mode(folder: int, name: str, mode: int) -> None:
    """Give a file or directory a mode, also one that may not be opened. Raises OSError."""
    flags = _PATH_ONLY or (os.O_RDONLY | os.O_NONBLOCK)
    fd = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        os.chmod(f"/proc/self/fd/{fd}" if _PATH_ONLY else fd, mode)  # noqa: PTH101 - a descriptor
    finally:
        os.close(fd)


@dataclass(frozen=True)
class Placing:
    """Single operations in open directories. All raise OSError.

    ``temporary`` is the name of the one file that is there only meanwhile; ``step`` is called
    before and after every operation.
    """

    temporary: str
    step: Callable[[], None]

    def sweep(self, folder: int) -> None:
        """Remove a temporary file that a crash has left."""
        with suppress(FileNotFoundError):
            os.unlink(self.temporary, dir_fd=folder)

    def mode(self, folder: int, name: str, mode: int) -> None:
        """Give a file or directory a mode."""
        self.step()
        set_mode(folder, name, mode)
        self.step()

    def remove(self, folder: int, name: str, *, directory: bool) -> None:
        """Remove a name, or an empty directory."""
        self.step()
        (os.rmdir if directory else os.unlink)(name, dir_fd=folder)
        self.step()

    def directory(self, folder: int, name: str) -> None:
        """Make a directory, for its owner alone at first."""
        self.step()
        os.mkdir(name, 0o700, dir_fd=folder)
        self.step()

    def link(self, folder: int, name: str, target: str, like: os.stat_result | None) -> None:
        """Put a symbolic link in place of what was ``like`` that, and still is, or of nothing."""
        self.step()
        if like is None:
            os.symlink(target, name, dir_fd=folder)
        else:
            self._replace_by_link(folder, name, target, like)
        self.step()

    def file(
        self, folder: int, name: str, data: bytes, mode: int, like: os.stat_result | None
    ) -> None:
        """Put a file in place of what was ``like`` that, and still is, or of nothing.

        It is whole, has its mode, and takes the owner of what it replaces, where that is allowed.
        """
        try:
            self._write(folder, data, mode, like)
            if like is None:
                self._link(folder, name)
            else:
                self._rename(folder, name, like)
            self.step()
        finally:
            self.sweep(folder)

    def _rename(self, folder: int, name: str, like: os.stat_result) -> None:
        """Replace a name, unless somebody wrote to it while the temporary file was written."""
        now = status_of(folder, name)
        if now and by_status(now) == by_status(like):
            os.rename(self.temporary, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _replace_by_link(self, folder: int, name: str, target: str, like: os.stat_result) -> None:
        try:
            os.symlink(target, self.temporary, dir_fd=folder)
            self.step()
            self._rename(folder, name, like)
        finally:
            self.sweep(folder)

    def _write(self, folder: int, data: bytes, mode: int, like: os.stat_result | None) -> None:
        self.step()
        fd = os.open(self.temporary, _NEW, 0o600, dir_fd=folder)
        try:
            self.step()
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            self.step()
            if like and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with suppress(PermissionError):
                    os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, mode)  # after the owner: chown clears set-id bits
        finally:
            os.close(fd)
        self.step()

    def _link(self, folder: int, name: str) -> None:
        here = self.temporary
        try:  # unlike a rename, a link never replaces anything
            os.link(here, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            os.rename(here, name, src_dir_fd=folder, dst_dir_fd=folder)
