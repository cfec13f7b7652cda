"""A state of a workspace as one flat map, and what a member's work has changed in it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final, TypeAlias

from daruma.tools.snapshots.entry import HERE, Entry, Tree

Flat: TypeAlias = Mapping[str, Entry]
"""Paths relative to the workspace, with `/`, to what is there; a directory's entry has no content.

Repositories (`.git`) are none of it, nor is the workspace's own folder.
"""

NOT_KEPT: Final = frozenset({"unread", "special"})
"""Kinds whose content no snapshot has: they are not in a worktree either."""


def flat(tree: Callable[[str], Tree], root: str) -> dict[str, Entry]:
    """Return all that lies in a directory of a store, ``root`` being its id, parents first."""
    found: dict[str, Entry] = {}
    waiting = [("", root)]
    while waiting:
        at, id_ = waiting.pop()
        for name, entry in sorted(tree(id_).items()):
            if entry.kind == "repository" or name == HERE:
                continue
            if entry.kind == "directory":
                waiting.append((f"{at}{name}/", entry.content))
                entry = Entry("directory", entry.mode, "")  # noqa: PLW2901 - what lies in it is told apart
            found[f"{at}{name}"] = entry
    return found


def changed(base: Flat, theirs: Flat) -> Iterator[str]:
    """Yield the paths that a member's work has changed, sorted.

    What was not kept in the base never came into the worktree: that it is not there is no change.
    A socket, pipe or device that the work left behind is none either.
    """
    for path in sorted(base.keys() | theirs.keys()):
        was, now = base.get(path), theirs.get(path)
        if was == now or (now is None and was is not None and was.kind in NOT_KEPT):
            continue
        if was is None and now is not None and now.kind == "special":
            continue
        yield path


def above(path: str) -> list[str]:
    """Return the directories on the way to a path, the nearest first."""
    return [str(each) for each in PurePosixPath(path).parents][:-1]
