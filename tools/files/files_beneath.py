"""The blocking file operations beneath one root; nothing is resolved first and opened later."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from daruma.tools.errors import FileUnavailable, PathRefused
from daruma.tools.files.atomic_write import create_entry, replace_entry
from daruma.tools.files.openers import DIRECTORY, Opener, best_opener
from daruma.tools.files.os_errors import explained
from daruma.tools.files.paths import Parts, parts_beneath, refuse_git, shown

LARGEST_FILE: Final = 4 * 1024 * 1024
"""Bytes; larger files are neither read nor written."""

# A FIFO without a writer would hang a plain open; so might a terminal.
READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


_REPLACED: Final = " (deleted)"
"""What the system adds to the name of a file that was replaced between opening and asking."""

_TRIES: Final = 100


class FilesBeneath:
    """Files beneath `root`, by path; each call opens the root anew and leaves nothing open.

    All methods block. All raise PathRefused or FileUnavailable.
    """

    def __init__(self, root: Path, opener: Opener | None = None) -> None:
        if not root.is_dir():
            raise FileUnavailable(f"workspace {shown(str(root))}: no such directory: create it")
        self.root = root.resolve(strict=True)
        self._names = (self.root, root.absolute())
        self._opener = opener or best_opener()

    def parts(self, path: str) -> Parts:
        """The pieces of `path` relative to the root, by its text alone."""
        return parts_beneath(path, self._names)

    def locate(self, path: str) -> str:
        """Where an existing file or directory really is, relative to the root, links resolved."""
        where = ""
        for _ in range(_TRIES):
            with explained(path), self.opened(self.parts(path), READ) as (_, location):
                where = "/".join(location) or "."
            if not where.endswith(_REPLACED):
                break
        return where

    def is_directory(self, path: str) -> bool:
        """Whether the existing `path` is a directory."""
        with explained(path), self.opened(self.parts(path), READ) as (fd, _):
            return stat.S_ISDIR(os.fstat(fd).st_mode)

    def read(self, path: str) -> bytes:
        """The content of a regular file of at most `LARGEST_FILE` bytes."""
        with explained(path), self._regular(path) as (fd, _):
            _refuse_oversized(path, os.fstat(fd).st_size)
            with os.fdopen(os.dup(fd), "rb") as file:
                data = file.read(LARGEST_FILE + 1)  # it may have grown since
        _refuse_oversized(path, len(data))
        return data

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of an existing file, atomically; a link's target is what changes."""
        _refuse_oversized(path, len(data))
        with explained(path), self._regular(path) as (fd, at), self._parent(at) as parent:
            replace_entry(parent, at[-1], data, like=os.fstat(fd))

    def create(self, path: str, data: bytes) -> None:
        """Make a new file, and the directories that lead to it; never replaces anything."""
        _refuse_oversized(path, len(data))
        parts = self._named(path)
        with explained(path):
            self._make_directories(parts[:-1])
            with self.opened(parts[:-1], DIRECTORY) as (parent, _):
                create_entry(parent, parts[-1], data)

    def delete(self, path: str) -> None:
        """Remove a regular file."""
        with explained(path), self._regular(path) as (_, at), self._parent(at) as parent:
            os.unlink(at[-1], dir_fd=parent)
            os.fsync(parent)

    @contextmanager
    def opened(
        self, parts: Parts, flags: int, *, links: bool = True
    ) -> Iterator[tuple[int, Parts]]:
        """A descriptor and where it really is. OSErrors pass through for the caller to explain."""
        root = os.open(self.root, DIRECTORY | os.O_CLOEXEC)
        try:
            fd = self._opener.open(root, parts, flags, links=links)
            try:
                location = self._opener.location(root, fd, parts)
                refuse_git(location)  # a link may lead there
                yield fd, location
            finally:
                os.close(fd)
        finally:
            os.close(root)

    @contextmanager
    def _regular(self, path: str) -> Iterator[tuple[int, Parts]]:
        with self.opened(self.parts(path), READ) as (fd, location):
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                what = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
                raise FileUnavailable(f"{shown(path)}: {what}")
            yield fd, location

    @contextmanager
    def _parent(self, location: Parts) -> Iterator[int]:
        with self.opened(location[:-1], DIRECTORY, links=False) as (fd, _):
            yield fd

    def _named(self, path: str) -> Parts:
        parts = self.parts(path)
        if not parts:
            raise PathRefused(f"{shown(path)}: is the workspace itself: name a file in it")
        return parts

    def _make_directories(self, parts: Parts) -> None:
        for depth in range(1, len(parts) + 1):
            with self.opened(parts[: depth - 1], DIRECTORY) as (parent, _):
                try:
                    os.mkdir(parts[depth - 1], dir_fd=parent)
                except FileExistsError:
                    continue
                os.fsync(parent)


def _refuse_oversized(path: str, size: int) -> None:
    if size > LARGEST_FILE:
        raise FileUnavailable(
            f"{shown(path)}: {size} bytes: files over {LARGEST_FILE} bytes are not read or written"
        )
