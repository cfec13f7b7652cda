"""A state of a workspace: looked at and read into the store, compared, mixed, and written out."""

import errno
import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeAlias

from daruma.state.data_dir import data_dir
from daruma.tools.files import SETTLED, Parts, closing_fd, file_status, is_lasting, parts_beneath
from daruma.tools.snapshots._ignore import Rules, decoded
from daruma.tools.snapshots._store import (
    GONE,
    ROOT_NAME,
    Change,
    Contents,
    Entry,
    Snapshot,
    SnapshotUnavailable,
    Tree,
    directory_opened,
    told,
    workspace_opened,
)

# --- What the system said of files that were read before, so that they need not be read again.


class Statuses:
    """Hashes of a workspace's files, good for as long as nothing about a file has changed."""

    def __init__(
        self, contents: Contents, workspace: bytes, now: Callable[[], int] = time.time_ns
    ) -> None:
        self._database = contents.database
        self._workspace = workspace
        self._now = now
        rows = self._database.execute(
            "SELECT path, status, hash FROM statuses WHERE workspace = ?", (workspace,)
        )
        self._known: dict[bytes, tuple[str, str]] = {path: (told, has) for path, told, has in rows}
        self._seen: set[bytes] = set()
        self._new: list[tuple[bytes, bytes, str, str]] = []

    def known(self, path: Parts, status: os.stat_result) -> str | None:
        """Return the hash of a file that is as it was when it was read."""
        key = os.fsencode("/".join(path))
        told = self._known.get(key)
        if told is None or told[0] != _told(status):
            return None
        self._seen.add(key)
        return told[1]

    def keep(self, path: Parts, status: os.stat_result, digest: str) -> None:
        """Note the hash of a file that was read, unless it was changed a moment ago."""
        if self._now() - max(status.st_mtime_ns, status.st_ctime_ns) >= SETTLED:
            key = os.fsencode("/".join(path))
            self._seen.add(key)
            self._new.append((self._workspace, key, _told(status), digest))

    def save(self) -> None:
        """Write what is new, and forget files that were not seen."""
        gone = ((self._workspace, key) for key in self._known.keys() - self._seen)
        self._database.executemany("DELETE FROM statuses WHERE workspace = ? AND path = ?", gone)
        self._database.executemany("INSERT OR REPLACE INTO statuses VALUES (?, ?, ?, ?)", self._new)


def _told(status: os.stat_result) -> str:
    times = f"{status.st_mtime_ns},{status.st_ctime_ns}"
    return f"{status.st_dev},{status.st_ino},{status.st_size},{times}"


# --- Reading one name of a directory into the store.

LARGEST: Final = 128 * 1024 * 1024
"""Bytes; the content of larger files is not kept."""

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TRIES: Final = 3
"""A file that is written while it is read is read again, and then taken as it is."""


@dataclass(eq=False)
class Reader:
    """Reads what is no directory, each content into ``put``, which returns its digest.

    What ``statuses`` knows is not read again.
    """

    put: Callable[[bytes], str]
    _: KW_ONLY
    statuses: Statuses | None = None
    largest: int = LARGEST

    def entry(
        self, folder: int, name: str, status: os.stat_result, above: Parts = ()
    ) -> Entry | None:
        """Return what a name in an open directory stands for; None if it has vanished.

        ``above`` is the directory's path, by which ``statuses`` know the file.
        """
        try:
            if stat.S_ISLNK(status.st_mode):
                return Entry("link", 0, os.readlink(name, dir_fd=folder))
            if not stat.S_ISREG(status.st_mode):
                return special(status)
            return self._file(folder, (*above, name), status)
        except GONE:
            return None
        except OSError:
            return unread(status)

    def _file(self, folder: int, path: Parts, status: os.stat_result) -> Entry | None:
        if self.statuses and (known := self.statuses.known(path, status)):
            return Entry("file", stat.S_IMODE(status.st_mode), known)
        if status.st_size > self.largest:
            return unread(status)
        with closing_fd(os.open(path[-1], _READ, dir_fd=folder)) as fd:
            return self._opened(fd, path)

    def _opened(self, fd: int, path: Parts) -> Entry:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return special(before)
        data, steady = self._content(fd, before)
        if data is None:
            return unread(before)
        digest = self.put(data)
        if steady and self.statuses:
            self.statuses.keep(path, before, digest)
        return Entry("file", stat.S_IMODE(before.st_mode), digest)

    def _content(self, fd: int, before: os.stat_result) -> tuple[bytes | None, bool]:
        """Return what an open file holds, and whether it was left alone all the while."""
        for _ in range(_TRIES):
            data = _whole(fd, before.st_size, self.largest)
            if file_status(before) == file_status(os.fstat(fd)):
                return data, True
            os.lseek(fd, 0, os.SEEK_SET)
            before = os.fstat(fd)
        return data, False


def unread(status: os.stat_result) -> Entry:
    """Return the entry of what is there and not kept."""
    return Entry("unread", stat.S_IMODE(status.st_mode), file_status(status).decode())


def special(status: os.stat_result) -> Entry:
    """Return the entry of a socket, pipe or device."""
    told = f"{stat.S_IFMT(status.st_mode):o},{status.st_rdev}"
    return Entry("special", stat.S_IMODE(status.st_mode), told)


def _whole(fd: int, size: int, largest: int) -> bytes | None:
    """Return all that an open file holds, None if that is more than ``largest``."""
    pieces, got = [], 0
    while got <= largest and (piece := os.read(fd, max(size - got, 0) + 1)):
        pieces.append(piece)
        got += len(piece)
        if got == size:  # one byte more was asked for: this is the end
            break
    return b"".join(pieces) if got <= largest else None


# --- Looking at a whole workspace: every name that is not outside, and all that it stands for.

SKIPPED: Final = (*GONE, PermissionError)
SWAPPED: Final = {errno.ELOOP, errno.EXDEV}
"""What opening a directory says that has become a link since it was listed."""

TRIES: Final = 128
"""How often a directory is opened that is swapped for something else all the while."""

TEMPORARY: Final = ".daruma-restore-"
"""What names of files begin with that are only there while a workspace is put back."""


@dataclass
class Walk:
    """One look at what lies beneath the open directory ``top``; nothing is followed out of it.

    Names that vanish meanwhile are as if they had never been. ``unkept`` are the paths whose
    content could not be kept.
    """

    top: int
    rules: Rules
    reader: Reader
    unkept: list[str] = field(default_factory=list)
    _trees: dict[Parts, Tree] = field(default_factory=dict)
    _modes: dict[Parts, int] = field(default_factory=dict)
    _tries: Counter[Parts] = field(default_factory=Counter)

    def root(self, put_tree: Callable[[Tree], str]) -> str:
        """Look, keep every directory, and return the id of the workspace's own. Raises OSError."""
        mode = stat.S_IMODE(os.fstat(self.top).st_mode)
        waiting: list[Parts] = [()]
        while waiting:
            waiting += self._directory(waiting.pop())
        self._trees[()][ROOT_NAME] = Entry("directory", mode, "")
        for path in reversed([*self._trees][1:]):  # what lies in a directory comes before it
            id_ = put_tree(self._trees.pop(path))
            self._trees[path[:-1]][path[-1]] = Entry("directory", self._modes[path], id_)
        return put_tree(self._trees[()])

    def _directory(self, path: Parts) -> list[Parts]:
        try:
            with directory_opened(self.top, path) as fd:
                self._modes[path] = stat.S_IMODE(os.fstat(fd).st_mode)
                tree = self._trees[path] = Tree()
                return [*self._entries(fd, path, tree)]
        except OSError as error:
            if not path or not (isinstance(error, SKIPPED) or error.errno in SWAPPED):
                raise
            return self._seen_again(path, readable=not isinstance(error, PermissionError))

    def _seen_again(self, path: Parts, *, readable: bool) -> list[Parts]:
        """Note what a directory is that could not be looked into; return it to try once more."""
        self._trees.pop(path, None)
        try:
            with directory_opened(self.top, path[:-1]) as fd:
                status = os.stat(path[-1], dir_fd=fd, follow_symlinks=False)
                directory = stat.S_ISDIR(status.st_mode)
                if directory and readable and self._tries[path] < TRIES:
                    self._tries[path] += 1
                    return [path]
                found = self.reader.entry(fd, path[-1], status) if not directory else unread(status)
        except OSError:
            return []  # what is above it is gone or swapped as well
        if found:
            self._put(self._trees[path[:-1]], path, found)
        return []

    def _entries(self, fd: int, path: Parts, tree: Tree) -> Iterator[Parts]:
        with os.scandir(fd) as found:
            for each in found:
                entry = self._entry(fd, path, each)
                if isinstance(entry, Entry):
                    self._put(tree, (*path, each.name), entry)
                elif entry:
                    yield (*path, each.name)

    def _entry(self, fd: int, path: Parts, each: "os.DirEntry[str]") -> Entry | bool | None:
        """Return what a name is, True for a directory to look into, None for nothing."""
        inside = (*path, each.name)
        directory = each.is_dir(follow_symlinks=False)
        if each.name.startswith(TEMPORARY) or self.rules.outside(inside, directory=directory):
            return None
        if self.rules.repository(inside):
            return Entry("repository", 0, _emptied(fd, each.name) if directory else "")
        if directory:
            return True
        try:
            status = each.stat(follow_symlinks=False)
        except GONE:
            return None
        if stat.S_ISDIR(status.st_mode):
            return True
        return self.reader.entry(fd, each.name, status, path)

    def _put(self, tree: Tree, path: Parts, entry: Entry) -> None:
        tree[path[-1]] = entry
        if entry.kind == "unread":
            self.unkept.append(told(path))


def _emptied(fd: int, name: str) -> str:
    """Tell a repository from the folder that is left of one: the sandbox holds on to that."""
    try:
        os.stat(f"{name}/HEAD", dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return "no HEAD"
    except OSError:  # it may not be looked into
        return ""
    return ""


# --- Looking up single paths in a kept state.


class Look:
    """Says what a kept state has at a path; of a directory only its kind and mode."""

    def __init__(self, tree: Callable[[str], Tree], root: str) -> None:
        self._tree = tree
        self._trees: dict[Parts, Tree] = {(): tree(root)}

    def __call__(self, path: Parts) -> Entry | None:
        return alone(self._directory(path[:-1]).get(path[-1]))

    def _directory(self, path: Parts) -> Tree:
        # From the top down and no recursion: directories may lie deeper than Python's calls may.
        for size in range(1, len(path) + 1):
            if path[:size] not in self._trees:
                entry = self._trees[path[: size - 1]].get(path[size - 1])
                inside = entry.content if entry and entry.kind == "directory" else ""
                self._trees[path[:size]] = self._tree(inside) if inside else {}
        return self._trees[path]


def alone(entry: Entry | None) -> Entry | None:
    """Return an entry without what lies in it."""
    if entry and entry.kind == "directory":
        return Entry("directory", entry.mode, "")
    return entry


def is_directory(entry: Entry | None) -> bool:
    """Say whether files can lie in this."""
    return entry is not None and entry.kind == "directory"


def above(path: Parts) -> list[Parts]:
    """Return the directories that a path lies in, but the root, outermost first."""
    return [path[:size] for size in range(1, len(path))]


# --- Comparing two directories of a store, looking only where they differ.

Difference: TypeAlias = tuple[Parts, Entry | None, Entry | None]
"""A path, what was there, what is there; None for nothing."""


def differences(
    tree: Callable[[str], Tree], before: str, after: str, at: Parts = ()
) -> Iterator[Difference]:
    """Yield what differs between two directories, given by their ids, parents first.

    A directory that is only on one side is yielded, and all that lies in it; one that is on both
    is yielded itself only where its mode differs.
    """
    # A stack and no recursion: directories may lie deeper than Python's calls may.
    waiting = [(at, before, after)] if before != after else []
    while waiting:
        at, before, after = waiting.pop()
        old, new = (tree(each) if each else {} for each in (before, after))
        for name in sorted(old.keys() | new.keys()):
            was, now = old.get(name), new.get(name)
            if was == now:
                continue
            inside = _directory(was), _directory(now)
            if not all(inside) or (was and now and was.mode != now.mode):
                yield (*at, name), was, now
            if inside[0] != inside[1]:
                waiting.append(((*at, name), *inside))


def as_changes(found: Iterable[Difference]) -> tuple[Change, ...]:
    """Return differences as people see them, sorted; a directory counts where it has no others."""
    changes: dict[Parts, Change] = {}
    bare: dict[Parts, Change] = {}
    for path, was, now in found:
        change = Change(told(path), "changed" if was and now else "deleted" if was else "added")
        directory = (was or now) and all(each is None or _directory(each) for each in (was, now))
        (bare if directory and change.what != "changed" else changes)[path] = change
    full = {path[:size] for path in (*changes, *bare) for size in range(1, len(path))}
    changes |= {path: change for path, change in bare.items() if path not in full}
    return tuple(sorted(changes.values(), key=lambda each: each.path))


def _directory(entry: Entry | None) -> str:
    return entry.content if entry and entry.kind == "directory" else ""


# --- What differs between two snapshots, whose ignore rules may differ too.


def between(contents: Contents, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    """Yield what differs, but what the rules of either leave alone."""
    found = differences(contents.tree, before.root, after.root)
    if before.rules == after.rules:
        yield from found
        return
    rules = [decoded(contents.blob(each.rules)) for each in (before, after)]
    for difference in found:
        if all(_covered(each, difference) for each in rules):
            yield difference


def _covered(rules: Rules, difference: Difference) -> bool:
    path, *entries = difference
    if rules.repository(path) and any(e and e.kind != "repository" for e in entries):
        return False
    return all(rules.covers(path, directory=is_directory(each)) for each in entries if each)


# --- A kept state with single paths of it read again.


def meant(workspace: Path, path: str) -> Parts:
    """Return where a file that was edited really is, links resolved, relative to the workspace.

    Raises PathRefused for a path that no editor may use, or that leads outside.
    """
    real = Path(os.path.realpath(workspace))
    parts = parts_beneath(path, (workspace.absolute(), real))
    return parts_beneath(os.path.realpath(real.joinpath(*parts)), (real,))


def seen_again(contents: Contents, root: str, top: int, path: Parts, rules: Rules) -> str:
    """Return the id of the root in which a file stands as it is in the workspace now.

    Directories above it that the root did not have come with it, empty but for it. A path that is
    outside of snapshots, or a directory, changes nothing.
    """
    if not path or rules.repository(path) or not rules.covers(path, directory=False):
        return root
    found = [_found(top, path[:size], contents) for size in range(1, len(path) + 1)]
    if found[-1] and found[-1].kind == "directory":
        return root
    return replaced(contents, root, path, found)


def replaced(contents: Contents, root: str, path: Parts, found: list[Entry | None]) -> str:
    """Return the id of a directory in which ``path`` is ``found``, one for each piece of it."""
    # No recursion: directories may lie deeper than Python's calls may.
    trees: list[Tree] = []
    inside = root
    for name, now in zip(path, found, strict=True):
        trees.append(contents.tree(inside) if inside else {})
        was = trees[-1].get(name)
        inside = was.content if was and was.kind == "directory" else ""
        if not now or now.kind != "directory":
            break
    id_ = ""
    for name, now, tree in reversed([*zip(path, found, trees, strict=False)]):
        tree.pop(name, None)
        if now:
            tree[name] = Entry("directory", now.mode, id_) if now.kind == "directory" else now
        id_ = contents.put_tree(tree)
    return id_


def _found(top: int, path: Parts, contents: Contents) -> Entry | None:
    try:
        with directory_opened(top, path[:-1]) as fd:
            status = os.stat(path[-1], dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                return Entry("directory", stat.S_IMODE(status.st_mode), "")
            return Reader(contents.put_blob).entry(fd, path[-1], status)
    except GONE:
        return None


# --- What lies in a workspace and in no snapshot of it.


def unheld(workspace: Path, rules: Rules) -> Iterator[Parts]:
    """Yield what is ignored, and repositories: outermost first, nothing that lies in them.

    Caches, which come and go by themselves, and Daruma's own data are left out.
    """
    own = os.path.realpath(data_dir())
    for at, folders, files in os.walk(workspace):
        here = Path(at).relative_to(workspace).parts
        kinds = [(name, True) for name in folders] + [(name, False) for name in files]
        left = set[str]()
        for name, directory in kinds:
            parts = (*here, name)
            outside = rules.outside(parts, directory=directory) or rules.repository(parts)
            if not outside:
                continue
            left.add(name)
            ours = os.path.realpath(Path(at, name)) == own
            if not ours and is_lasting("/".join(parts), directory=directory):
                yield parts
        folders[:] = [name for name in folders if name not in left]


_BY_RUNS: Final = re.compile(
    r"\.git|\.tox|\.hypothesis|\.nyc_output|htmlcov|\.?coverage(?:\..*)?|target|logs?|te?mp"
    r"|\.idea|\.DS_Store|.*(?:cache_*|\.log|\.o|\.pid|\.pyc|\.sw.|\.tsbuildinfo|~)"
)
"""Names of what checks, compilers, git and editors write by themselves."""


def noted(workspace: Path, rules: Rules, most: int = 1_000) -> Rules:
    """Return rules with what they ignore and what lies right in it, at most so much of each."""

    def some(paths: Iterable[Path]) -> list[Path]:
        return [*islice((each for each in paths if not _BY_RUNS.fullmatch(each.name)), most)]

    tops = some(workspace.joinpath(*each) for each in unheld(workspace, rules))
    folders = (each for each in tops if status_of(each)[0] == "directory")
    listed = (found for each in folders for found in islice(os.walk(each), 1))
    inside = some(Path(at, name) for at, *names in listed for name in chain(*names))
    found = {str(each.relative_to(workspace)): status_of(each)[0] for each in (*tops, *inside)}
    return replace(rules, ignored=found)


def status_of(path: Path) -> tuple[str, float]:
    """Return what tells a change, and its Unix time; of a folder nothing but that it is there."""
    try:
        found = path.lstat()
    except OSError:
        return "", 0.0
    directory = stat.S_ISDIR(found.st_mode)
    return "directory" if directory else file_status(found).decode(), found.st_ctime


# --- Writing a snapshot's files into a folder of their own.

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def materialise(contents: Contents, root: str, folder: Path) -> None:
    """Write a state into a new or empty folder: files, links, directories, modes.

    Repositories, special files and what is not kept are left out. Raises SnapshotUnavailable: the
    folder is not empty or can not be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with workspace_opened(folder) as top:
            if next(folder.iterdir(), None):
                raise SnapshotUnavailable(f"{folder}: not empty: name a new or an empty folder")
            _write(contents, root, top)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SnapshotUnavailable(f"{folder}: {why}: the files can not be written") from error


def _write(contents: Contents, root: str, top: int) -> None:
    modes: list[tuple[Parts, int]] = []
    waiting: list[tuple[Parts, str]] = [((), root)]
    while waiting:
        path, id_ = waiting.pop()
        with directory_opened(top, path) as fd:
            for name, entry in contents.tree(id_).items():
                if entry.kind == "directory":
                    modes.append(((*path, name), entry.mode))
                if entry.kind == "directory" and name != ROOT_NAME:
                    os.mkdir(name, 0o700, dir_fd=fd)
                    waiting.append(((*path, name), entry.content))
                elif entry.kind == "link":
                    os.symlink(entry.content, name, dir_fd=fd)
                elif entry.kind == "file":
                    made = os.open(name, _NEW, 0o600, dir_fd=fd)
                    with os.fdopen(made, "wb") as file:
                        file.write(contents.blob(entry.content))
                        file.flush()
                        os.fchmod(made, entry.mode)
    for path, mode in reversed(modes):  # a directory that may not be written comes after its files
        with directory_opened(top, path) as fd:
            os.fchmod(fd, mode)
