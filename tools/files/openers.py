"""Two ways to open a path so that it can not leave a directory, also while others rename in it.

`KernelOpener` (Linux 5.6 and later) lets the kernel watch over the whole walk, so that links inside
the tree work. `WalkingOpener` (macOS, old kernels, filters without openat2) opens piece by piece
and follows no link at all.
"""

import ctypes
import errno
import os
import stat
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from daruma.tools.errors import PathRefused
from daruma.tools.files.paths import Parts

SYS_OPENAT2: Final = 437  # the same number on every architecture that Python supports
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY
TRIES: Final = 128  # EAGAIN means that something was renamed during the walk: man openat2


class Opener(Protocol):
    """Opens what lies beneath a directory. Errors are OSError, as from `os.open`."""

    def open(self, root: int, parts: Parts, flags: int, *, links: bool) -> int:
        """A new descriptor; `links` allows links that stay beneath `root`, where possible."""

    def location(self, root: int, fd: int, parts: Parts) -> Parts:
        """Where `fd`, opened as `parts`, really is, links resolved."""


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


class KernelOpener:
    """openat2(2) with RESOLVE_BENEATH; an absolute link is refused even if it leads inside."""

    def __init__(self) -> None:
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long

    def open(self, root: int, parts: Parts, flags: int, *, links: bool) -> int:
        resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (0 if links else RESOLVE_NO_SYMLINKS)
        how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
        name = os.fsencode("/".join(parts) or ".")
        for _ in range(TRIES):
            fd = self._openat2(root, name, how)
            if fd >= 0:
                return fd
            code = ctypes.get_errno()
            if code not in {errno.EAGAIN, errno.EINTR}:
                break
        raise OSError(code, os.strerror(code))

    def _openat2(self, root: int, name: bytes, how: _OpenHow) -> int:
        size = ctypes.c_size_t(ctypes.sizeof(how))
        number, at = ctypes.c_long(SYS_OPENAT2), ctypes.c_long(root)
        return int(self._syscall(number, at, ctypes.c_char_p(name), ctypes.byref(how), size))

    def location(self, root: int, fd: int, parts: Parts) -> Parts:
        home, place = (str(Path(f"/proc/self/fd/{each}").readlink()) for each in (root, fd))
        if place != home and not place.startswith(home.rstrip("/") + "/"):
            raise PathRefused(f"{'/'.join(parts)}: was moved out of the workspace while in use")
        return tuple(piece for piece in place[len(home) :].split("/") if piece)


class WalkingOpener:
    """One `openat` per piece with O_NOFOLLOW: every link is refused with ELOOP."""

    def open(self, root: int, parts: Parts, flags: int, *, links: bool) -> int:  # noqa: ARG002 - the Opener's signature; no link is ever followed
        if not parts:
            return os.open(".", flags | os.O_CLOEXEC, dir_fd=root)
        at = os.dup(root)
        try:
            for part in parts[:-1]:
                below = self._step(at, part, DIRECTORY)
                os.close(at)
                at = below
            return self._step(at, parts[-1], flags)
        finally:
            os.close(at)

    def _step(self, at: int, part: str, flags: int) -> int:
        try:
            return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        except NotADirectoryError:
            if stat.S_ISLNK(os.stat(part, dir_fd=at, follow_symlinks=False).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
            raise

    def location(self, root: int, fd: int, parts: Parts) -> Parts:  # noqa: ARG002 - the Opener's signature
        return parts


@cache
def best_opener() -> Opener:
    """The kernel's way where it is proved to work in this process, else the walk."""
    root = os.open("/", DIRECTORY | os.O_CLOEXEC)
    try:
        opener = KernelOpener()
        fd = opener.open(root, (), DIRECTORY, links=True)
        try:
            opener.location(root, fd, ())
        finally:
            os.close(fd)
    except (OSError, AttributeError):
        return WalkingOpener()
    else:
        return opener
    finally:
        os.close(root)
