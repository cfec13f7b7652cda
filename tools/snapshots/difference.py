"""Comparing two directories of a store, looking only where they differ."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.entry import Entry, Tree

Difference: TypeAlias = tuple[Parts, Entry | None, Entry | None]
"""A path, what was there, what is there; None for nothing."""


def differences(
    tree: Callable[[str], Tree], before: str, after: str, at: Parts = ()
) -> Iterator[Difference]:
    """Yield what differs between two directories, given by their ids, parents first.

    A directory that is only on one side is yielded, and all that lies in it; one that is on both
    is yielded itself only where its mode differs.
    """
    if before == after:
        return
    old, new = tree(before) if before else {}, tree(after) if after else {}
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was == now:
            continue
        inside = _directory(was), _directory(now)
        if not all(inside) or (was and now and was.mode != now.mode):
            yield (*at, name), was, now
        if any(inside):
            yield from differences(tree, *inside, (*at, name))


def _directory(entry: Entry | None) -> str:
    return entry.content if entry and entry.kind == "directory" else ""
