"""A kept state with single paths of it read again."""

import os
import stat

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.beneath import GONE, directory_opened
from daruma.tools.snapshots.contents import Contents
from daruma.tools.snapshots.entry import Entry
from daruma.tools.snapshots.ignored import Rules
from daruma.tools.snapshots.reading import Reader


def seen_again(contents: Contents, root: str, top: int, path: Parts, rules: Rules) -> str:
    """Return the id of the root in which a file stands as it is in the workspace now.

    Directories above it that the root did not have come with it, empty but for it. A path that is
    outside of snapshots, or a directory, changes nothing.
    """
    if rules.repository(path) or not rules.covers(path, directory=False):
        return root
    found = [_found(top, path[:size], contents) for size in range(1, len(path) + 1)]
    if found[-1] and found[-1].kind == "directory":
        return root
    return replaced(contents, root, path, found)


def replaced(contents: Contents, root: str, path: Parts, found: list[Entry | None]) -> str:
    """Return the id of a directory in which ``path`` is ``found``, one for each piece of it."""
    tree = contents.tree(root) if root else {}
    name, now, was = path[0], found[0], tree.get(path[0])
    if now and now.kind == "directory":
        inside = was.content if was and was.kind == "directory" else ""
        now = Entry("directory", now.mode, replaced(contents, inside, path[1:], found[1:]))
    changed = {each: entry for each, entry in tree.items() if each != name}
    return contents.put_tree({**changed, name: now} if now else changed)


def _found(top: int, path: Parts, contents: Contents) -> Entry | None:
    try:
        with directory_opened(top, path[:-1]) as fd:
            status = os.stat(path[-1], dir_fd=fd, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                return Entry("directory", stat.S_IMODE(status.st_mode), "")
            return Reader(contents.put_blob).entry(fd, path[-1], status)
    except GONE:
        return None
