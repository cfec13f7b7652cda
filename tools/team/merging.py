"""Three-way merge of a member's work into the workspace, over flat maps of what is where."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from daruma.tools.snapshots.entry import Entry
from daruma.tools.team.changes import NOT_KEPT, Flat
from daruma.tools.team.decisions import Decisions, completed, decided
from daruma.tools.team.three_way import Read, Taken

Goal: TypeAlias = Mapping[str, Entry | None]
"""What is to be where, None for nothing; only of paths that are to change."""

_LONGEST: Final = 40
"""Characters of a phase's id that stand in the names of files."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One path in which a member's work and other work meet, and how."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What comes of a merge.

    ``contents`` are those of merged files, by SHA-256: a store has to keep them before the goal can
    be applied, as it keeps all others.
    """

    goal: Goal
    conflicts: tuple[Conflict, ...] = ()
    contents: Mapping[str, bytes] = field(default_factory=dict)


def merged(base: Flat, mine: Flat, theirs: Flat, read: Read) -> Merge:
    """Bring what ``theirs`` has changed since ``base`` into ``mine``; nothing is changed itself.

    ``base`` has to be the first snapshot of the worktree that ``theirs`` is the last of: it knows
    the same ignore rules. With any conflict the goal is empty: half of a member's work may be worse
    than none. Blocks while git merges texts; ``read`` raises KeyError for what is not kept.
    """
    found = decided(base, mine, theirs, read, ("the workspace", "the phase"))
    if found.clashes:
        return Merge({}, _conflicts(found))
    goal = {path: each.entry for path, each in found.taken.items()}
    return Merge(goal, (), _contents(found))


def with_markers(base: Flat, mine: Flat, theirs: Flat, read: Read, phase: str) -> Merge:
    """Return the goal for the worktree, made from ``mine``, in which conflicts are to be settled.

    It holds all of the member's changes. Texts in conflict have both versions between markers; of
    what else is in conflict PATH is as in the workspace, and PATH.phase-ID as the member has it.
    """
    found = decided(base, mine, theirs, read, ("the workspace", f"phase {phase}"))
    aside = _aside(found, mine, theirs)
    goal: dict[str, Entry | None] = {
        path: each.entry
        for path, each in (found.taken | _marked(found)).items()
        if not any(_within(path, each) for each in aside)
    }
    names = mine.keys() | theirs.keys()
    for path in aside:
        goal |= _beside(path, theirs, phase, names)
    return Merge(completed(goal, mine, theirs), _conflicts(found), _contents(found))


def _conflicts(found: Decisions) -> tuple[Conflict, ...]:
    return tuple(Conflict(path, clash.why) for path, clash in sorted(found.clashes.items()))


def _contents(found: Decisions) -> dict[str, bytes]:
    every = (found.taken | _marked(found)).values()
    return {each.entry.content: each.text for each in every if each.entry and each.text is not None}


def _marked(found: Decisions) -> dict[str, Taken]:
    return {path: clash.marked for path, clash in found.clashes.items() if clash.marked}


def _aside(found: Decisions, mine: Flat, theirs: Flat) -> list[str]:
    """Return the topmost paths of which both versions are needed; folders hold both anyway."""
    paths = [path for path, clash in found.clashes.items() if not clash.marked]
    both = [path for path in paths if not _is_folder(mine, path) or not _is_folder(theirs, path)]
    return [path for path in both if not any(_within(path, each) for each in both if each != path)]


def _is_folder(there: Flat, path: str) -> bool:
    entry = there.get(path)
    return entry is not None and entry.kind == "directory"


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _beside(path: str, theirs: Flat, phase: str, names: Collection[str]) -> dict[str, Entry]:
    """Return the member's version of a path, and all that lies in it, under a name of its own."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", phase)[:_LONGEST]
    beside = f"{path}.phase-{plain}"
    number = 1
    while beside in names:
        number += 1
        beside = f"{path}.phase-{plain}-{number}"
    return {
        beside + each.removeprefix(path): entry
        for each, entry in theirs.items()
        if _within(each, path) and entry.kind not in NOT_KEPT
    }
