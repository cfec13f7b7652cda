"""Looking up single paths in a kept state."""

from collections.abc import Callable

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.entry import Entry, Tree


class Look:
    """Says what a kept state has at a path; of a directory only its kind and mode."""

    def __init__(self, tree: Callable[[str], Tree], root: str) -> None:
        self._tree = tree
        self._trees: dict[Parts, Tree] = {(): tree(root)}

    def __call__(self, path: Parts) -> Entry | None:
        entry = self._directory(path[:-1]).get(path[-1])
        return alone(entry)

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
