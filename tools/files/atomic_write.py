"""Whole files or none: how a file is put into a directory that is already open."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_entry(directory: int, name: str, data: bytes, like: os.stat_result) -> None:
    """Put `data` in place of the entry `name`, with the mode and owner of `like`.

    The old inode is left alone, so a hard link to it elsewhere keeps its content. Access lists and
    extended attributes are not carried over.
    """
    with _temporary(directory, data, 0o600) as (fd, temporary):
        _dress(fd, like)
        os.fsync(fd)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)


def put_entry(directory: int, name: str, data: bytes, mode: int) -> None:
    """Put `data` under `name`, whether or not it exists, with `mode` less the umask."""
    with _temporary(directory, data, mode) as (fd, temporary):
        os.fsync(fd)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)


def create_entry(directory: int, name: str, data: bytes) -> None:
    """Put `data` under the new name `name`; FileExistsError if anything bears it already."""
    with _temporary(directory, data, 0o666) as (fd, temporary):
        os.fsync(fd)
        # Unlike a rename, a link never replaces anything.
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        os.fsync(directory)


@contextmanager
def _temporary(directory: int, data: bytes, mode: int) -> Iterator[tuple[int, str]]:
    name = f".daruma-{secrets.token_hex(8)}.tmp"
    fd = os.open(name, NEW, mode, dir_fd=directory)
    try:
        _write_all(fd, data)
        yield fd, name
    finally:
        os.close(fd)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _dress(fd: int, like: os.stat_result) -> None:
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):
            os.fchown(fd, like.st_uid, like.st_gid)
    os.fchmod(fd, stat.S_IMODE(like.st_mode))  # after the owner: chown clears set-id bits
