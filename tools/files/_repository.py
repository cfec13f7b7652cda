"""Reading git's repositories without git: what a command left in one can run nothing (SE-01)."""

import os
import stat
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# --- Small files and pointers, also where a command may have put something else in their place.

SMALL: Final = 1024 * 1024
"""Bytes; git's own files of settings, patterns and pointers are never near that."""


def content_of(path: Path, folder: int | None = None, most: int = SMALL) -> bytes:
    """Return what a regular file holds; nothing where it is none, too large, or not to be read.

    A pipe is not waited for. Beneath an open ``folder`` no link is followed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | (os.O_NOFOLLOW if folder is not None else 0), dir_fd=folder)
    except (OSError, ValueError):
        return b""
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            return b""
        with os.fdopen(os.dup(fd), "rb") as file:
            return file.read(most)
    except OSError:
        return b""
    finally:
        os.close(fd)


def repository_above(workspace: Path) -> Path | None:
    """Return the nearest folder, from the workspace upwards, that holds a ``.git``."""
    return next((each for each in (workspace, *workspace.parents) if is_there(each / ".git")), None)


def is_there(path: Path) -> bool:
    """Say whether a name is there, also where it may not be looked at."""
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


REPOSITORY: Final = frozenset({"HEAD", "commondir", "objects", "refs"})
"""By these names git knows a repository."""


def is_repository(names: Collection[str]) -> bool:
    """Whether git takes a folder with these names for a repository, whatever its own name is.

    Then it reads settings and hooks there. What belongs to ``HEAD`` may lie in another folder.
    """
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= {*names})


def own_folder(git: Path) -> Path:
    """Return where the repository is that a ``.git``, which may be a file, stands for."""
    pointer = _pointer(git)
    return git.parent / os.fsdecode(pointer[8:]) if pointer.startswith(b"gitdir: ") else git


def common_folder(git: Path) -> Path:
    """Return where a worktree's or submodule's repository keeps what all its worktrees share."""
    own = own_folder(git)
    common = _pointer(own / "commondir")
    return own / os.fsdecode(common) if common else own


def _pointer(path: Path) -> bytes:
    """Return what git reads there: blanks count, and it is a string of C's."""
    return content_of(path).rstrip(b"\r\n").partition(b"\0")[0]


# --- The index: which files git tracks, and which repositories it takes for parts of this one.

LARGEST_INDEX: Final = 256 * 1024 * 1024

MOST_EXPANDED: Final = 16
"""How many times larger than the index all names may be: shared beginnings could be endless."""

_FOLDER, _REPOSITORY = 0o040000, 0o160000
_EXTENDED: Final = 0x4000
_LONG_NAME: Final = 0xFFF
_BEFORE_HASH: Final = 40


@dataclass(frozen=True, slots=True)
class Index:
    """Paths relative to the repository's work. ``repositories`` are those of submodules.

    One that is not ``whole`` could not be read to its end as git would, or holds what git never
    writes: it may name more.
    """

    files: frozenset[str] = frozenset()
    repositories: frozenset[str] = frozenset()
    whole: bool = True


def read_index(git: Path) -> Index:
    """Return what the index of a repository says; one that can not be read says nothing.

    What a sparse index keeps as a whole folder is not in the files: it is not in the workspace
    either. Of a split index both parts count.
    """
    own = own_folder(git)
    hashed = _hash_size(content_of(common_folder(git) / "config"))
    try:
        if not is_there(own / "index"):
            return Index()
        entries, shared = _parse(content_of(own / "index", most=LARGEST_INDEX), hashed)
        if shared:
            entries += _parse(content_of(own / shared, most=LARGEST_INDEX), hashed)[0]
    except (ValueError, IndexError, struct.error):
        return Index(whole=False)
    paths = [(mode & 0o170000, os.fsdecode(name)) for mode, name in entries if name]
    plain = [(kind, path) for kind, path in paths if _is_plain(path, folder=kind == _FOLDER)]
    return Index(
        frozenset(path for kind, path in plain if kind not in (_FOLDER, _REPOSITORY)),
        frozenset(path for kind, path in plain if kind == _REPOSITORY),
        whole=len(plain) == len(paths),
    )


def _hash_size(settings: bytes) -> int:
    """Return how long digests are. The file's own digest says nothing: git does not look at it."""
    section = b""
    for line in settings.lower().splitlines():
        plain = b"".join(line.split())
        if plain.startswith(b"["):
            section = plain
        elif section == b"[extensions]" and plain == b"objectformat=sha256":
            return 32
    return 20


def _is_plain(path: str, *, folder: bool) -> bool:
    parts = (path.removesuffix("/") if folder else path).split("/")
    return not {"", ".", "..", ".git"} & {part.casefold() for part in parts}


def _parse(data: bytes, hashed: int) -> tuple[list[tuple[int, bytes]], str]:
    """Return modes and names, and the file of the shared part of a split index, if it is one."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("it is no index")
    found: list[tuple[int, bytes]] = []
    starts = list[int]()
    at, name, left = 12, b"", MOST_EXPANDED * len(data)
    for _ in range(count):
        if at >= len(data) or left < 0:
            raise ValueError("it ends too early, or its names do not end")
        starts.append(at)
        mode = int.from_bytes(data[at + 24 : at + 28], "big")
        begin = at + _BEFORE_HASH + hashed
        flags = int.from_bytes(data[begin : begin + 2], "big")
        start = begin + (4 if flags & _EXTENDED else 2)
        if version == 4:
            dropped, start = _number(data, start)
            end = data.index(b"\0", start)
            name, at = name[: len(name) - dropped] + data[start:end], end + 1
        else:
            long = flags & _LONG_NAME == _LONG_NAME
            end = data.index(b"\0", start) if long else start + (flags & _LONG_NAME)
            name, at = data[start:end], at + (end - at + 8) // 8 * 8
        found.append((mode, name))
        left -= len(name)
    return found, _shared_part(data, at, hashed, starts)


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of variable length, as packs have it, and return where it ends."""
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1


def _shared_part(data: bytes, at: int, hashed: int, starts: list[int]) -> str:
    """Return the file of the shared part. Tables of where things begin have to say what is so."""
    found, end = list[tuple[bytes, bytes]](), at
    while end + 8 <= len(data) - hashed:
        name, size = struct.unpack_from(">4sI", data, end)
        found.append((name, data[end + 8 : end + 8 + size]))
        end += 8 + size
    if len({name for name, _ in found}) < len(found):
        raise ValueError("an extension is there twice")
    known = dict(found)
    entries_end = int.from_bytes(known.get(b"EOIE", b"")[:4], "big")
    blocks = struct.iter_unpack(">II", known.get(b"IEOT", b"")[4:])
    if entries_end not in (0, at) or not {where for where, _ in blocks} <= {*starts}:
        raise ValueError("a table of it leads elsewhere")
    base = known.get(b"link", b"")[:hashed]
    return f"sharedindex.{base.hex()}" if any(base) else ""
