"""A digest of a folder's content: what was approved is void once anything in it has changed."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

from daruma.tools.files.file_hashes import FileHashes, by_status, hash_of
from daruma.tools.files.files_beneath import READ
from daruma.tools.files.openers import DIRECTORY, Opener, WalkingOpener, best_opener
from daruma.tools.files.os_errors import explained
from daruma.tools.files.paths import Parts
from daruma.tools.files.tree_parts import is_fetched, place

LARGEST: Final = 64 * 1024 * 1024
"""Bytes; larger files are not read."""

_HASHES: Final = FileHashes()
_GONE: Final = (FileNotFoundError, NotADirectoryError)

Found: TypeAlias = tuple[Parts, os.stat_result]
Fields: TypeAlias = tuple[bytes, ...]


def tree_id(root: Path, *, hashes: FileHashes = _HASHES, opener: Opener | None = None) -> str:
    """Return the SHA-256, in hexadecimal, of all that lies in ``root``.

    Every name counts, also what git ignores: its kind, mode, content and, of a link, where it
    leads. Links are not followed, special files not opened. Left out is what
    :func:`daruma.tools.files.tree_parts.place` says; fetched dependencies, files over ``LARGEST``
    and what may not be read count by size, times and inode. Blocks. Raises FileUnavailable if
    ``root`` can not be listed.
    """
    digest = hashlib.sha256()
    with explained(str(root)):
        top = os.open(root, DIRECTORY | os.O_CLOEXEC)
        try:
            for fields in _Tree(top, hashes, opener or best_opener()).entries():
                digest.update(b"".join(len(each).to_bytes(8, "big") + each for each in fields))
        finally:
            os.close(top)
    return digest.hexdigest()


class _Tree:
    """One walk through what lies beneath an open directory."""

    def __init__(self, top: int, hashes: FileHashes, opener: Opener) -> None:
        self.top = top
        self.hashes = hashes
        self.opener = opener

    def entries(self) -> Iterator[Fields]:
        """Yield what is known of each entry, in an order that depends on nothing but the names."""
        waiting = self._listed(())
        while waiting:
            parts, status = waiting.pop()
            if place(parts, directory=stat.S_ISDIR(status.st_mode)) == "counts":
                name = os.fsencode("/".join(parts))
                yield name, str(status.st_mode).encode(), self._content(parts, status)
            if stat.S_ISDIR(status.st_mode):
                try:
                    waiting += self._listed(parts)
                except _GONE:
                    continue
                except OSError:
                    yield b"not listed", by_status(status)

    def _listed(self, folder: Parts) -> list[Found]:
        fd = self._open(folder, DIRECTORY)
        try:
            with os.scandir(fd) as found:
                listed = [_seen(folder, entry) for entry in found]
        finally:
            os.close(fd)
        return sorted((each for each in listed if each), key=lambda each: os.fsencode(each[0][-1]))

    def _content(self, parts: Parts, status: os.stat_result) -> bytes:
        try:
            if stat.S_ISLNK(status.st_mode):
                return self._target(parts)
            if not stat.S_ISREG(status.st_mode):
                return str(status.st_rdev).encode()
            if status.st_size > LARGEST or is_fetched(parts):
                return by_status(status)
            return self._hash(parts, status)
        except _GONE:
            return b"gone"
        except OSError:
            return b"not read," + by_status(status)

    def _hash(self, parts: Parts, status: os.stat_result) -> bytes:
        path = os.fsencode("/".join(parts))
        if known := self.hashes.known(path, status):
            return known
        fd = self._open(parts, READ)
        try:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                return b"not a file any more"
            digest = hash_of(fd)
            if by_status(before) == by_status(os.fstat(fd)):
                self.hashes.keep(path, before, digest, time.time_ns())
        finally:
            os.close(fd)
        return digest

    def _target(self, parts: Parts) -> bytes:
        fd = self._open(parts[:-1], DIRECTORY)
        try:
            return os.fsencode(os.readlink(parts[-1], dir_fd=fd))
        finally:
            os.close(fd)

    def _open(self, parts: Parts, flags: int) -> int:
        try:
            return self.opener.open(self.top, parts, flags, links=False)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
        return WalkingOpener().open(self.top, parts, flags, links=False)


def _seen(folder: Parts, entry: "os.DirEntry[str]") -> Found | None:
    """Return an entry with its status, unless it is left out or has vanished."""
    try:
        status = entry.stat(follow_symlinks=False)
    except _GONE:
        return None
    parts = (*folder, entry.name)
    left_out = place(parts, directory=stat.S_ISDIR(status.st_mode)) == "left out"
    return None if left_out else (parts, status)
