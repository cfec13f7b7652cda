"""File operations beneath one root: opened without a race, written whole or not at all,
searched.
"""

import ctypes
import errno
import json
import os
import re
import secrets
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal, Protocol

from daruma.tools.errors import FileUnavailable, PathRefused, ToolError
from daruma.tools.files._paths import (
    Glob,
    Parts,
    TextFile,
    explain_errors,
    parts_beneath,
    printable_path,
    refuse_git,
    refuse_own,
)
from daruma.tools.files._repository import REPOSITORY, is_repository

# --- Two ways to open a path so that it can not leave a directory, also while others rename in it.
#
# `KernelOpener` (Linux 5.6 and later) lets the kernel watch over the whole walk, so that links
# inside the tree work. `WalkingOpener` (macOS, old kernels, filters without openat2) opens piece by
# piece and follows no link at all.

SYS_OPENAT2: Final = 437  # the same number on every architecture that Python supports
RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY
TRIES: Final = 128  # EAGAIN means that something was renamed during the walk: man openat2


@contextmanager
def closing_fd(fd: int) -> Iterator[int]:
    """Close a descriptor at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


class Opener(Protocol):
    """Opens what lies beneath a directory. Errors are OSError, as from `os.open`."""

    def open(self, root: int, parts: Parts, flags: int, *, links: bool) -> int:
        """A new descriptor; `links` allows links that stay beneath `root`, where possible."""

    def location(self, root: int, fd: int, parts: Parts) -> Parts:
        """Where `fd`, opened as `parts`, really is, links resolved."""


class _OpenHow(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("flags", "mode", "resolve"))


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
            fd = self._syscall(
                ctypes.c_long(SYS_OPENAT2),
                ctypes.c_long(root),
                ctypes.c_char_p(name),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if fd >= 0:
                return int(fd)
            code = ctypes.get_errno()
            if code not in {errno.EAGAIN, errno.EINTR}:
                break
        raise OSError(code, os.strerror(code))

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
    with closing_fd(os.open("/", DIRECTORY | os.O_CLOEXEC)) as root:
        try:
            opener = KernelOpener()
            with closing_fd(opener.open(root, (), DIRECTORY, links=True)) as fd:
                opener.location(root, fd, ())
        except (OSError, AttributeError):
            return WalkingOpener()
        return opener


def open_beneath(opener: Opener, root: int, parts: Parts, flags: int) -> int:
    """Open what lies beneath a directory at any depth, no link being followed."""
    try:
        return opener.open(root, parts, flags, links=False)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    return WalkingOpener().open(root, parts, flags, links=False)


# --- Whole files or none: how a file is put into a directory that is already open.

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_entry(directory: int, name: str, data: bytes, like: os.stat_result) -> None:
    """Put `data` in place of the entry `name`, with the mode and owner of `like` (ED-03).

    The old inode is left alone, so a hard link to it elsewhere keeps its content. Access lists and
    extended attributes are not carried over.
    """
    with _temporary(directory, data, 0o600) as (fd, temporary):
        own = os.fstat(fd)
        if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
            with suppress(PermissionError):
                os.fchown(fd, like.st_uid, like.st_gid)
        os.fchmod(fd, stat.S_IMODE(like.st_mode))  # after the owner: chown clears set-id bits
        os.fsync(fd)  # its mode and owner
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


def put_entry(directory: int, name: str, data: bytes, mode: int) -> None:
    """Put `data` under `name`, whether or not it exists, with `mode` less the umask."""
    with _temporary(directory, data, mode) as (_, temporary):
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)


def create_entry(directory: int, name: str, data: bytes) -> None:
    """Put `data` under the new name `name`; FileExistsError if anything bears it already."""
    with _temporary(directory, data, 0o666) as (_, temporary):
        # Unlike a rename, a link never replaces anything.
        os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)


@contextmanager
def _temporary(directory: int, data: bytes, mode: int) -> Iterator[tuple[int, str]]:
    """Yield a file that is written out; what the body makes of its name is written out as well."""
    name = f".daruma-{secrets.token_hex(8)}.tmp"
    fd = os.open(name, NEW, mode, dir_fd=directory)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.fsync(fd)
        yield fd, name
        os.fsync(directory)
    finally:
        os.close(fd)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


# --- The blocking file operations beneath one root; nothing is resolved first and opened later.

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
            place = printable_path(str(root))
            raise FileUnavailable(f"workspace {place}: no such directory: create it")
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
            with explain_errors(path), self.opened(self.parts(path), READ) as (_, location):
                where = "/".join(location) or "."
            if not where.endswith(_REPLACED):
                break
        return where

    def is_directory(self, path: str) -> bool:
        """Whether the existing `path` is a directory."""
        with explain_errors(path), self.opened(self.parts(path), READ) as (fd, _):
            return stat.S_ISDIR(os.fstat(fd).st_mode)

    def read(self, path: str) -> bytes:
        """The content of a regular file of at most `LARGEST_FILE` bytes."""
        with explain_errors(path), self._regular(path) as (fd, _):
            _refuse_oversized(path, os.fstat(fd).st_size)
            with os.fdopen(os.dup(fd), "rb") as file:
                data = file.read(LARGEST_FILE + 1)  # it may have grown since
        _refuse_oversized(path, len(data))
        return data

    def replace(self, path: str, data: bytes) -> None:
        """Put `data` in place of an existing file, atomically; a link's target is what changes."""
        _refuse_oversized(path, len(data))
        with explain_errors(path), self._regular(path) as (fd, at), self._parent(at) as parent:
            self._refuse_kept(at)
            replace_entry(parent, at[-1], data, like=os.fstat(fd))

    def create(self, path: str, data: bytes) -> None:
        """Make a new file, and the directories that lead to it; never replaces anything."""
        _refuse_oversized(path, len(data))
        parts, made = self.parts(path), list[Parts]()
        if not parts:
            raise PathRefused(f"{printable_path(path)}: is the workspace itself: name a file in it")
        try:
            with explain_errors(path):
                self._make_directories(parts[:-1], made)
                with self.opened(parts[:-1], DIRECTORY) as (parent, at):
                    self._refuse_kept((*at, parts[-1]))
                    create_entry(parent, parts[-1], data)
        except BaseException:
            for each in reversed(made):  # what somebody else put there meanwhile stays
                with suppress(OSError, ToolError), self.opened(each[:-1], DIRECTORY) as (at_, _):
                    os.rmdir(each[-1], dir_fd=at_)
            raise

    def delete(self, path: str) -> None:
        """Remove a regular file."""
        with explain_errors(path), self._regular(path) as (_, at), self._parent(at) as parent:
            self._refuse_kept(at)
            os.unlink(at[-1], dir_fd=parent)
            os.fsync(parent)

    @contextmanager
    def opened(
        self, parts: Parts, flags: int, *, links: bool = True
    ) -> Iterator[tuple[int, Parts]]:
        """A descriptor and where it really is. OSErrors pass through for the caller to explain."""
        with (
            closing_fd(os.open(self.root, DIRECTORY | os.O_CLOEXEC)) as root,
            closing_fd(self._opener.open(root, parts, flags, links=links)) as fd,
        ):
            location = self._opener.location(root, fd, parts)
            refuse_git(location)  # a link may lead there
            yield fd, location

    def _refuse_kept(self, location: Parts) -> None:
        """Raise PathRefused for what Daruma runs from, and parts of repositories (SE-05)."""
        refuse_own(self.root, location)
        for depth, name in enumerate(location):
            folder = self.root.joinpath(*location[:depth])
            there = {each for each in REPOSITORY if each == name or os.path.lexists(folder / each)}
            if is_repository(there):
                refuse_git((*location, ".git"))

    @contextmanager
    def _regular(self, path: str) -> Iterator[tuple[int, Parts]]:
        with self.opened(self.parts(path), READ) as (fd, location):
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                what = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
                raise FileUnavailable(f"{printable_path(path)}: {what}")
            yield fd, location

    @contextmanager
    def _parent(self, location: Parts) -> Iterator[int]:
        with self.opened(location[:-1], DIRECTORY, links=False) as (fd, _):
            yield fd

    def _make_directories(self, parts: Parts, made: list[Parts]) -> None:
        for depth in range(1, len(parts) + 1):
            with self.opened(parts[: depth - 1], DIRECTORY) as (parent, at):
                self._refuse_kept((*at, parts[depth - 1]))
                try:
                    os.mkdir(parts[depth - 1], dir_fd=parent)
                except FileExistsError:
                    continue
                made.append(parts[:depth])
                os.fsync(parent)


def _refuse_oversized(path: str, size: int) -> None:
    if size > LARGEST_FILE:
        raise FileUnavailable(
            f"{printable_path(path)}: {size} bytes: files over {LARGEST_FILE} bytes are "
            "not read or written"
        )


# --- What lies in directories beneath a root, without following links and without end.

Kind = Literal["file", "directory", "link", "special"]

CACHES: Final = frozenset({
    ".cache", ".eggs", ".hypothesis", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox",
    ".venv", "__pycache__", "node_modules", "venv",
})  # fmt: skip
"""Directories that hold what tools made or fetched, by name."""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One name in a directory; `path` is relative to the root."""

    path: str
    kind: Kind


def list_entries(files: FilesBeneath, path: str) -> list[DirectoryEntry]:
    """The entries of a directory by name, `.git` left out. Raises as `FilesBeneath` does."""
    parts = files.parts(path)
    with (
        explain_errors(path),
        files.opened(parts, DIRECTORY) as (fd, location),
        os.scandir(fd) as found,
    ):
        named = sorted((entry.name, _kind(entry)) for entry in found if entry.name != ".git")
    return [DirectoryEntry("/".join((*location, name)), kind) for name, kind in named]


def walk(files: FilesBeneath, path: str, skip: Collection[str] = ()) -> Iterator[DirectoryEntry]:
    """Everything beneath a directory, parents first, links not followed.

    Directories named in `skip` are reported but not entered. What vanishes or may not be read on
    the way is passed over; only `path` itself must be a readable directory.
    """
    waiting = list_entries(files, path)[::-1]
    while waiting:
        entry = waiting.pop()
        yield entry
        if entry.kind == "directory" and entry.path.rpartition("/")[2] not in skip:
            try:
                waiting += list_entries(files, entry.path)[::-1]
            except ToolError:
                continue


def _kind(entry: "os.DirEntry[str]") -> Kind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "special"


# --- The search itself, run as a process of its own: a regular expression can not be interrupted.
#
# `python -c ... REQUEST`, where REQUEST is JSON; the answer is one JSON object on standard output.
# Imports only what starts fast.

LONGEST_LINE: Final = 200


@dataclass(frozen=True, slots=True)
class Request:
    """What to look for; without `pattern`, for names only."""

    root: str
    path: str
    pattern: str | None
    glob: str | None
    most: int


@dataclass(slots=True)
class Answer:
    """What was found; `error` alone if the request can not be carried out."""

    lines: list[str] = field(default_factory=list)
    cut: bool = False
    skipped: int = 0
    error: str | None = None


def main() -> None:
    """Answer the request in the last argument."""
    request = Request(**json.loads(sys.argv[-1]))
    try:
        answer = scan(request)
    except re.error as error:
        answer = Answer(error=f"the pattern is no regular expression: {error}")
    except ToolError as error:
        answer = Answer(error=str(error))
    sys.stdout.write(json.dumps(asdict(answer)))


def scan(request: Request) -> Answer:
    """Go through the files. Raises re.error for the pattern and ToolError for the path."""
    files = FilesBeneath(Path(request.root))
    pattern = None if request.pattern is None else re.compile(request.pattern)
    answer = Answer()
    for path in _paths(files, request):
        found = iter([path]) if pattern is None else _matches(files, path, pattern, answer)
        for line in found:
            if len(answer.lines) == request.most:
                answer.cut = True
                return answer
            answer.lines.append(line)
    return answer


def _paths(files: FilesBeneath, request: Request) -> Iterator[str]:
    glob = Glob(request.glob) if request.glob else None
    if not files.is_directory(request.path):
        yield files.locate(request.path)
        return
    for entry in walk(files, request.path, skip=CACHES):
        if entry.kind == "file" and (glob is None or glob.matches(entry.path)):
            yield entry.path


def _matches(
    files: FilesBeneath, path: str, pattern: re.Pattern[str], answer: Answer
) -> Iterator[str]:
    try:
        text = TextFile.of(files.read(path), path).text
    except ToolError:
        answer.skipped += 1
        return
    for number, line in enumerate(text.split("\n"), 1):
        if match := pattern.search(line.removesuffix("\r")):
            shown = line.strip()
            if len(shown) > LONGEST_LINE:
                start = max(0, min(match.start() - LONGEST_LINE // 4, len(line) - LONGEST_LINE))
                end = start + LONGEST_LINE
                shown = "…" * (start > 0) + line[start:end].strip() + "…" * (end < len(line))
            yield f"{path}:{number}: {shown}"
