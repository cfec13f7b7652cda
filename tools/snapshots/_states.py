"""Kept states: looked up, compared, mixed, read again in part, written into a folder."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from daruma.state.data_dir import data_dir
from daruma.tools.files import Parts, is_lasting, parts_beneath
from daruma.tools.snapshots._ignore import Rules, decoded
from daruma.tools.snapshots._outcome import (
    GONE,
    ROOT_NAME,
    Change,
    Entry,
    Snapshot,
    SnapshotUnavailable,
    Tree,
    directory_opened,
    told,
    workspace_opened,
)
from daruma.tools.snapshots._store import Contents
from daruma.tools.snapshots._walk import Reader

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
