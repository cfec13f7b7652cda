"""Looking at a whole workspace: every name that is not outside, and all that it stands for."""

import errno
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import GONE, directory_opened
from daruma.tools.snapshots.entry import HERE, Entry, Tree
from daruma.tools.snapshots.ignored import Rules
from daruma.tools.snapshots.path_text import told
from daruma.tools.snapshots.reading import Reader, unread

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
        self._look()
        for path in reversed([*self._trees][1:]):  # what lies in a directory comes before it
            id_ = put_tree(self._trees.pop(path))
            self._trees[path[:-1]][path[-1]] = Entry("directory", self._modes[path], id_)
        return put_tree(self._trees[()])

    def _look(self) -> None:
        mode = stat.S_IMODE(os.fstat(self.top).st_mode)
        waiting: list[Parts] = [()]
        while waiting:
            waiting += self._directory(waiting.pop())
        self._trees[()][HERE] = Entry("directory", mode, "")

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
