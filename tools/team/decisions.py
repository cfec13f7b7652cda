"""What becomes of every path that a member's work has changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from daruma.tools.snapshots.entry import Entry
from daruma.tools.team.changes import Flat, above, changed
from daruma.tools.team.three_way import NAMES, Clash, Read, Taken, Versions, three_way


@dataclass(frozen=True, slots=True)
class Decisions:
    """The paths that can be taken over, and those that can not."""

    taken: dict[str, Taken]
    clashes: dict[str, Clash]


def decided(base: Flat, mine: Flat, theirs: Flat, read: Read, labels: tuple[str, str]) -> Decisions:
    """Merge path by path, then see to it that everything still lies in a folder."""
    taken: dict[str, Taken] = {}
    clashes: dict[str, Clash] = {}
    for path in changed(base, theirs):
        of = Versions(base.get(path), mine.get(path), theirs.get(path))
        done = three_way(of, read, labels)
        if isinstance(done, Clash):
            clashes[path] = done
        elif done.entry != of.mine:
            taken[path] = done
    goal = completed({path: each.entry for path, each in taken.items()}, mine, theirs)
    wanted = goal | {path: theirs[path] for path in clashes if path in theirs}
    for path, why in _in_the_way(after(mine, wanted)):
        clashes.setdefault(path, Clash(why))
    return Decisions({p: taken.get(p) or Taken(entry) for p, entry in goal.items()}, clashes)


def after(mine: Flat, goal: Mapping[str, Entry | None]) -> dict[str, Entry]:
    """Return what is there once a goal is reached."""
    return {path: entry for path, entry in {**mine, **goal}.items() if entry is not None}


def completed(
    goal: Mapping[str, Entry | None], mine: Flat, theirs: Flat
) -> dict[str, Entry | None]:
    """Keep a folder that one side has removed if the other has put something into it."""
    held = {folder for path in after(mine, goal) for folder in above(path)}
    kept = {path: entry for path, entry in goal.items() if entry is not None or path not in held}
    for folder in sorted(held - mine.keys() - kept.keys()):
        if folder in theirs:
            kept[folder] = theirs[folder]
    return kept


def _in_the_way(there: Flat) -> Iterator[tuple[str, str]]:
    for folder in sorted({folder for path in there for folder in above(path)}):
        entry = there.get(folder)
        if entry is not None and entry.kind != "directory":
            yield folder, f"{NAMES[entry.kind]} on one side, a folder on the other"
