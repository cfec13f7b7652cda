"""A digest of a folder's content: what was approved is void once anything in it has changed."""

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NamedTuple, TypeAlias

from daruma.tools.files._beneath import (
    DIRECTORY,
    READ,
    Opener,
    best_opener,
    closing_fd,
    open_beneath,
)
from daruma.tools.files._paths import Parts, explain_errors, printable_path

# --- Hashes of files that were read before, for as long as nothing about a file has changed.

MOST: Final = 100_000
"""Files; the ones read first are forgotten first. About 30 MB."""

SETTLED: Final = 2_000_000_000
"""Nanoseconds: a file changed since then may change again within one tick of its times; 2 s is the
coarsest tick of a file system in use (FAT)."""

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


def file_status(status: os.stat_result) -> bytes:
    """Return size, times and inode: what changes when a file does, without reading it."""
    told = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return ",".join(map(str, told)).encode()


def _key(path: bytes, status: os.stat_result) -> Key:
    times = status.st_mtime_ns, status.st_ctime_ns
    return path, status.st_dev, status.st_ino, status.st_size, *times


# --- Which parts of a workspace's tree say what it is, and which come and go by themselves.

Place = Literal["counts", "entered", "left out"]

REMADE: Final = frozenset({".mypy_cache", ".pytest_cache", ".ruff_cache"})
"""Directories that checkers write whenever they run, to read their own results from."""

FETCHED: Final = frozenset({".nox", ".tox", ".venv", "node_modules", "venv"})
"""Directories of dependencies: many files, seldom edited, slow to read."""

_COMPILED = re.compile(r".*\.pyc(?:\.\d+)?", re.DOTALL)
"""With a number while it is being written."""

_GIT_CONTROL: Final = frozenset(
    {"HEAD", "attributes", "commondir", "config", "config.worktree", "gitdir", "packed-refs"}
)
_GIT_HOLDS_CONTROL: Final = frozenset({"hooks", "info", "modules", "refs", "worktrees"})
_GIT_DATA: Final = frozenset({"logs", "lfs", "objects"})


def place(parts: Parts, *, directory: bool) -> Place:
    """Say whether an entry counts, is only entered for what lies in it, or is left out.

    Python's compiled files are made anew by every run. Of git's own only what makes git run
    something counts, its configuration and hooks, and where its branches point, which says what a
    push would push: looking at a repository rewrites the rest.
    """
    name = parts[-1]
    if directory and name in REMADE:
        return "left out"
    if ".git" in parts[:-1]:
        last = max(at for at, part in enumerate(parts[:-1]) if part == ".git")
        return _place_in_git(parts[last + 1 :], directory=directory)
    if directory:
        return "entered" if name == "__pycache__" else "counts"
    compiled = "__pycache__" in parts[-2:-1] and _COMPILED.fullmatch(name)
    return "left out" if compiled else "counts"


def is_lasting(path: str, *, directory: bool = False) -> bool:
    """Say whether what lies at a path (with ``/``) is more than what comes and goes by itself."""
    parts = tuple(path.split("/"))
    inside = all(place(parts[:n], directory=True) != "left out" for n in range(1, len(parts)))
    return inside and place(parts, directory=directory) == "counts"


def _place_in_git(inside: Parts, *, directory: bool) -> Place:
    if inside[0] != "logs" and not {"hooks", "refs"}.isdisjoint(inside[:-1]):
        return "counts"
    if directory:
        control = inside[0] in _GIT_HOLDS_CONTROL and _GIT_DATA.isdisjoint(inside)
        return "entered" if control else "left out"
    return "counts" if inside[-1] in _GIT_CONTROL else "left out"


# --- A digest of a folder's content: what was approved is void once anything in it has changed.

LARGEST: Final = 64 * 1024 * 1024
"""Bytes; larger files are not read."""

MOST_BEHIND: Final = 10_000
"""Entries that are looked at behind all links together; what is beyond is not seen."""

_HASHES: Final = FileHashes()
_GONE: Final = (FileNotFoundError, NotADirectoryError)

Found: TypeAlias = tuple[Parts, os.stat_result]
Fields: TypeAlias = tuple[bytes, ...]


class Tree(NamedTuple):
    """A folder's content: a digest of all of it, and by name one of each entry, in hexadecimal."""

    id: str
    entries: Mapping[str, str]


def tree_of(
    root: Path,
    *,
    named: bool = True,
    hashes: FileHashes = _HASHES,
    opener: Opener | None = None,
) -> Tree:
    """Return the SHA-256 of all that lies in ``root``, with its entries if they are ``named``.

    Every name counts, also what git ignores: its kind, mode, content and, of a link, where it
    leads. A link out of ``root``, or to what is left out, counts with what lies behind it (TL-13a),
    by size, times and inode; no other is followed, and special files are not opened. Left out is
    what :func:`daruma.tools.files._tree.place` says; fetched dependencies, files over ``LARGEST``
    and what may not be read count by size, times and inode. Blocks. Raises FileUnavailable if
    ``root`` can not be listed.
    """
    digest = hashlib.sha256()
    entries: dict[str, str] = {}
    with explain_errors(str(root)), closing_fd(os.open(root, DIRECTORY | os.O_CLOEXEC)) as top:
        for fields in _Walk(top, root, hashes, opener or best_opener()).entries():
            packed = b"".join(len(each).to_bytes(8, "big") + each for each in fields)
            digest.update(packed)
            if named:
                entries[os.fsdecode(fields[0])] = _short(packed)
    return Tree(digest.hexdigest(), entries)


class _Walk:
    def __init__(self, top: int, root: Path, hashes: FileHashes, opener: Opener) -> None:
        self.top = top
        self.root = root
        self.hashes = hashes
        self.opener = opener
        self._behind = _Behind(root)

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
                    yield b"not listed", file_status(status)

    def _listed(self, folder: Parts) -> list[Found]:
        with closing_fd(self._open(folder, DIRECTORY)) as fd, os.scandir(fd) as found:
            listed = [_seen(folder, entry) for entry in found]
        return sorted((each for each in listed if each), key=lambda each: os.fsencode(each[0][-1]))

    def _content(self, parts: Parts, status: os.stat_result) -> bytes:
        try:
            if stat.S_ISLNK(status.st_mode):
                with closing_fd(self._open(parts[:-1], DIRECTORY)) as fd:
                    target = os.fsencode(os.readlink(parts[-1], dir_fd=fd))
                return target + b"".join(self._behind.found(parts, os.fsdecode(target)))
            if not stat.S_ISREG(status.st_mode):
                return str(status.st_rdev).encode()
            if status.st_size > LARGEST or not FETCHED.isdisjoint(parts[:-1]):
                return file_status(status)
            return self._hash(parts, status)
        except _GONE:
            return b"gone"
        except OSError:
            return b"not read," + file_status(status)

    def _hash(self, parts: Parts, status: os.stat_result) -> bytes:
        path = os.fsencode("/".join(parts))
        if known := self.hashes.known(path, status):
            return known
        with closing_fd(self._open(parts, READ)) as fd:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                return b"not a file any more"
            content = hashlib.sha256()  # `file_digest` is slower, and hangs where a read would wait
            while chunk := os.read(fd, 1024 * 1024):
                content.update(chunk)
            digest = content.digest()
            if file_status(before) == file_status(os.fstat(fd)):
                self.hashes.keep(path, before, digest, time.time_ns())
        return digest

    def _open(self, parts: Parts, flags: int) -> int:
        return open_beneath(self.opener, self.top, parts, flags)


def _seen(folder: Parts, entry: "os.DirEntry[str]") -> Found | None:
    """Return an entry with its status, unless it is left out or has vanished."""
    try:
        status = entry.stat(follow_symlinks=False)
    except _GONE:
        return None
    parts = (*folder, entry.name)
    left_out = place(parts, directory=stat.S_ISDIR(status.st_mode)) == "left out"
    return None if left_out else (parts, status)


class _Behind:
    """What lies behind links, of which ``MOST_BEHIND`` entries are looked at."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self._left = MOST_BEHIND

    def found(self, parts: Parts, target: str) -> Iterator[bytes]:
        """Yield what is behind a link, as far as the walk does not meet it elsewhere."""
        if self._is_met(parts, target):
            return
        waiting, seen = [Path(self._root, *parts)], set[str]()
        while waiting and self._left:
            path = waiting.pop()
            self._left -= 1
            try:
                status = path.stat()
                yield b"\0" + os.fsencode(path) + b"\0" + str(status.st_mode).encode()
                if not stat.S_ISDIR(status.st_mode):
                    yield file_status(status)
                elif (real := os.path.realpath(path)) not in seen and not self._root.startswith(
                    real.rstrip("/") + "/"
                ):  # a folder that holds the root is known by its name alone
                    seen.add(real)
                    waiting += sorted(path.iterdir(), reverse=True)
            except OSError as error:
                yield str(error.errno).encode()

    def _is_met(self, parts: Parts, target: str) -> bool:
        """Whether a link's target is an entry that counts by itself: by its text, if that says."""
        names = target.split("/")
        up = next((at for at, name in enumerate(names) if name != ".."), len(names))
        plain = up < len(parts) and not {"", "..", "."} & set(names[up:])
        if plain:
            inside = (*parts[: len(parts) - 1 - up], *names[up:])
        else:
            real = os.path.realpath("/".join((self._root, *parts)))
            if not real.startswith(self._root + "/"):
                return real == self._root
            inside = tuple(real[len(self._root) + 1 :].split("/"))
        return is_lasting("/".join(inside)) or is_lasting("/".join(inside), directory=True)


# --- What has changed between two looks, in a few names.

MOST_ENTRIES: Final = 5_000
"""Entries of a listing that is kept; folders stand for what lies in them where there are more."""

MOST_NAMED: Final = 10

_DEPTHS: Final = (100, 4, 2, 1)


class Listing(NamedTuple):
    """A tree's entries to so many folders deep, those of dependencies as one."""

    depth: int
    entries: Mapping[str, str]


def list_tree(tree: Tree, depth: int | None = None) -> Listing:
    """Return a tree's entries, short enough to be kept, or to a depth that was kept before."""
    for each in _DEPTHS if depth is None else (depth,):
        listing = _folded(tree.entries, each)
        if len(listing) <= MOST_ENTRIES:
            return Listing(each, listing)
    return Listing(depth or 0, _folded(tree.entries, depth or 0))


def _folded(entries: Mapping[str, str], depth: int) -> dict[str, str]:
    together: dict[str, list[str]] = {}
    for name, value in entries.items():
        parts = name.split("/")
        fetched = depth
        if not FETCHED.isdisjoint(parts):
            fetched = 1 + next(at for at, part in enumerate(parts) if part in FETCHED)
        end = min(depth, fetched)
        short = name if len(parts) <= end else "/".join(parts[:end])
        together.setdefault(short, []).append(value)
    return {
        name: values[0] if len(values) == 1 else _short("".join(values).encode())
        for name, values in together.items()
    }


def _short(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def changes_between(before: Listing, after: Tree) -> str:
    """Name what is new, gone or changed; the rest by number. Empty where that is not known."""
    then, now = before.entries, list_tree(after, before.depth).entries
    both = [(name, "gone" if name not in now else "changed") for name in then]
    changed = [each for each in both if now.get(each[0]) != then[each[0]]]
    changed += [(name, "new") for name in now if name not in then]
    named = [f"{printable_path(name or 'files')} ({how})" for name, how in changed]
    more = [f"{len(named) - MOST_NAMED} more"] if len(named) > MOST_NAMED else []
    return ", ".join((*named[:MOST_NAMED], *more))
