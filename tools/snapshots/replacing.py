"""A kept state with single paths of it read again."""

import os
import stat
from pathlib import Path

from daruma.tools.files.paths import Parts, parts_beneath
from daruma.tools.snapshots.beneath import GONE, directory_opened
from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.entry import Entry, Tree
from daruma.tools.snapshots.ignored import Rules
from daruma.tools.snapshots.reading import Reader


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
