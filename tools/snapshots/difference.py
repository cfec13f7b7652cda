"""Comparing two directories of a store, looking only where they differ."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from daruma.tools.files.paths import Parts
from daruma.tools.snapshots.entry import Entry, Tree
from daruma.tools.snapshots.outcome import Change
from daruma.tools.snapshots.path_text import told

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
