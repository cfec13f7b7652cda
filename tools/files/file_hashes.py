"""Hashes of files that were read before, for as long as nothing about a file has changed."""

import hashlib
import os
from threading import Lock
from typing import Final, TypeAlias

MOST: Final = 100_000
"""Files; the ones read first are forgotten first. About 30 MB."""

SETTLED: Final = 2_000_000_000
"""Nanoseconds: a file changed since then may change again within one tick of its times; 2 s is the
coarsest tick of a file system in use (FAT)."""

_CHUNK: Final = 1024 * 1024

Key: TypeAlias = tuple[bytes, int, int, int, int, int]


class FileHashes:
    """A bounded memory of hashes by path and what the system says of a file. For any thread."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[Key, bytes] = {}
        self._lock = Lock()

    def known(self, path: bytes, status: os.stat_result) -> bytes | None:
        """Return the hash of a file that is as it was when it was hashed, if there is one."""
        with self._lock:
            return self._known.get(_key(path, status))

    def keep(self, path: bytes, status: os.stat_result, digest: bytes, now: int) -> None:
        """Note the hash of a file that was read, unless it was changed just before ``now``.

        ``now`` is in nanoseconds since 1970, as the times of files are.
        """
        if now - max(status.st_mtime_ns, status.st_ctime_ns) < SETTLED:
            return
        with self._lock:
            self._known[_key(path, status)] = digest
            while len(self._known) > self._most:
                del self._known[next(iter(self._known))]


def hash_of(fd: int) -> bytes:
    """Return the SHA-256 of an open file's content."""
    digest = hashlib.sha256()
    while chunk := os.read(fd, _CHUNK):
        digest.update(chunk)
    return digest.digest()


def by_status(status: os.stat_result) -> bytes:
    """Return size, times and inode: what changes when a file does, without reading it."""
    told = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return ",".join(map(str, told)).encode()


def _key(path: bytes, status: os.stat_result) -> Key:
    return (
        path,
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
