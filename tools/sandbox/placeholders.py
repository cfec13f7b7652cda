"""Files that keep a name taken, while commands run, by which git would read another configuration.

What is not there can not be made read-only. Each says nothing new to git, so that one which is left
because Daruma was killed does no harm; the next command takes it for its own and removes it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

CONTENT: Final = {"commondir": b".\n", "config.worktree": b""}
"""The repository's own folder, and no settings."""


@contextmanager
def placeholders(git: int, names: tuple[str, ...] = tuple(CONTENT)) -> Iterator[None]:
    """Make what is missing in an open folder; the last command that uses it removes it.

    Commands at once, also of other processes, know of each other by a lock on the folder.
    """
    lock = os.open(f"/proc/self/fd/{git}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        for name in names:
            with suppress(FileExistsError, PermissionError):
                _make(lock, name)
        yield
    finally:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for name in names:
                _remove(lock, name)
        os.close(lock)


def _make(folder: int, name: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(CONTENT[name])


def _remove(folder: int, name: str) -> None:
    with suppress(OSError):  # there is none, or it is no file of ours
        if _content(folder, name) == CONTENT[name]:
            os.unlink(name, dir_fd=folder)


def _content(folder: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as file:
        return file.read(16)
