"""Three-way merge of a member's work into the workspace, over flat maps of what is where."""

import hashlib
import re
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias, TypeVar

from daruma.tools.commands import CannotRun, run_git
from daruma.tools.errors import ToolError
from daruma.tools.snapshots import ROOT_NAME, Entry, EntryKind, Tree

# --- A state of a workspace as one flat map, and what a member's work has changed in it.

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
            if entry.kind == "repository" or name == ROOT_NAME:
                continue
            if entry.kind == "directory":
                waiting.append((f"{at}{name}/", entry.content))
                entry = Entry("directory", entry.mode, "")  # noqa: PLW2901 - what lies in it is told apart
            found[f"{at}{name}"] = entry
    return found


def changed_paths(base: Flat, theirs: Flat) -> Iterator[str]:
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


# --- Merging two versions of a text with what they both come from, by `git merge-file`.

SECONDS: Final = 60.0
"""How long one file may take."""

LOOKED_AT: Final = 8000
"""Bytes in which a zero says that it is no text: git's own rule."""

_ERROR: Final = 128
"""From this code on it is no number of conflicts."""


@dataclass(frozen=True, slots=True)
class TextMerge:
    """Two versions put together; ``clean`` is False where it holds conflict markers."""

    text: bytes
    clean: bool


class NotMerged(Exception):
    """Raised when texts can not be merged at all; the text says why, in a few words."""


def is_text(data: bytes) -> bool:
    """Whether a content can be merged line by line."""
    return b"\0" not in data[:LOOKED_AT]


def merge_text(
    base: bytes, mine: bytes, theirs: bytes, labels: tuple[str, str] = ("mine", "theirs")
) -> TextMerge:
    """Merge line by line; changes that touch each other are conflicts, none is dropped.

    Blocks for a few milliseconds, and needs no repository. ``labels`` stand at the markers, mine
    first. Raises :class:`NotMerged`.
    """
    with tempfile.TemporaryDirectory(prefix="daruma-merge-") as folder:
        place = Path(folder)
        for name, data in (("mine", mine), ("base", base), ("theirs", theirs)):
            (place / name).write_bytes(data)
        marks = (item for label in (labels[0], "before", labels[1]) for item in ("-L", label))
        words = ("merge-file", "-p", *marks, "mine", "base", "theirs")
        try:
            done = run_git(*words, folder=place, seconds=SECONDS)
        except FileNotFoundError:
            raise NotMerged("git is not installed, which merges texts") from None
        except CannotRun as error:
            raise NotMerged(f"git merge-file can not be run: {error}") from None
    if not 0 <= done.returncode < _ERROR:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it failed"]
        raise NotMerged(f"git merge-file: {said[-1][:200]}")
    return TextMerge(done.stdout, clean=done.returncode == 0)


# --- Merging what two sides made of one path.

T = TypeVar("T")

Read: TypeAlias = Callable[[str], bytes]
"""Returns a content by its SHA-256."""

NAMES: Final[dict[EntryKind, str]] = {
    "file": "a file",
    "link": "a link",
    "directory": "a folder",
    "special": "no file but a socket, pipe or device",
    "unread": "too large, or may not be read",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """What is to be at the path; ``text`` is its content where that is a new one."""

    entry: Entry | None
    text: bytes | None = None


@dataclass(frozen=True, slots=True)
class Clash:
    """Two sides that can not be put together. ``marked`` shows both, where that is a text."""

    why: str
    marked: Taken | None = None


def three_way(
    base: Entry | None,
    mine: Entry | None,
    theirs: Entry | None,
    read: Read,
    labels: tuple[str, str],
) -> Taken | Clash:
    """Merge one path: before, in the workspace by now, and in the worktree; None for nothing.

    ``labels`` name the two sides where lines of a text meet. Call it for what the member has
    changed. Equal changes of both sides are none.
    """
    for side in (theirs, mine):
        if side is not None and side.kind in NOT_KEPT and mine != theirs:
            return Clash(f"it can not be merged: it is {NAMES[side.kind]}")
    if mine in (base, theirs):
        return Taken(theirs)
    if mine is None or theirs is None:
        gone, changed = (
            ("the workspace", "the phase") if mine is None else ("the phase", "the workspace")
        )
        return Clash(f"{gone} has deleted what {changed} has changed")
    if mine.kind != theirs.kind:
        return Clash(f"{NAMES[mine.kind]} in the workspace, {NAMES[theirs.kind]} in the phase")
    return _same_kind(base, mine, theirs, read, labels)


def _same_kind(
    base: Entry | None, mine: Entry, theirs: Entry, read: Read, labels: tuple[str, str]
) -> Taken | Clash:
    mode = _either(base.mode if base else None, mine.mode, theirs.mode)
    if mode is None:
        return Clash(
            f"two permissions: {mine.mode:o} in the workspace, {theirs.mode:o} in the phase"
        )
    content = _either(base.content if base else None, mine.content, theirs.content)
    if content is not None:
        return Taken(Entry(mine.kind, mode, content))
    if mine.kind != "file":
        return Clash("a link to two places")
    return _texts(base, replace(mine, mode=mode), theirs, read, labels)


def _either(base: T | None, mine: T, theirs: T) -> T | None:
    """Return the side that has changed; None if both have, differently."""
    if theirs in (base, mine):
        return mine
    return theirs if mine == base else None


def _texts(
    base: Entry | None, mine: Entry, theirs: Entry, read: Read, labels: tuple[str, str]
) -> Taken | Clash:
    before = read(base.content) if base and base.kind == "file" else b""
    versions = (before, read(mine.content), read(theirs.content))
    if not all(map(is_text, versions)):
        return Clash("both have changed it, and it is no text")
    try:
        merged = merge_text(*versions, labels)
    except NotMerged as error:
        return Clash(f"both have changed it; {error}")
    taken = Taken(replace(mine, content=hashlib.sha256(merged.text).hexdigest()), merged.text)
    return taken if merged.clean else Clash("both have changed the same lines", taken)


# --- What becomes of every path that a member's work has changed.


@dataclass(frozen=True, slots=True)
class Decisions:
    """The paths that can be taken over, and those that can not."""

    taken: dict[str, Taken]
    clashes: dict[str, Clash]


def merge_paths(
    base: Flat, mine: Flat, theirs: Flat, read: Read, labels: tuple[str, str]
) -> Decisions:
    """Merge path by path, then see to it that everything still lies in a folder."""
    taken: dict[str, Taken] = {}
    clashes: dict[str, Clash] = {}
    for path in changed_paths(base, theirs):
        done = three_way(base.get(path), mine.get(path), theirs.get(path), read, labels)
        if isinstance(done, Clash):
            clashes[path] = done
        elif done.entry != mine.get(path):
            taken[path] = done
    goal = complete_folders({path: each.entry for path, each in taken.items()}, mine, theirs)
    wanted = goal | {path: theirs[path] for path in clashes if path in theirs}
    there = after(mine, wanted)
    for folder in {folder for path in there for folder in above(path)}:
        entry = there.get(folder)
        if entry is not None and entry.kind != "directory":
            why = f"{NAMES[entry.kind]} on one side, a folder on the other"
            clashes.setdefault(folder, Clash(why))
    return Decisions({p: taken.get(p) or Taken(entry) for p, entry in goal.items()}, clashes)


def after(mine: Flat, goal: Mapping[str, Entry | None]) -> dict[str, Entry]:
    """Return what is there once a goal is reached."""
    return {path: entry for path, entry in {**mine, **goal}.items() if entry is not None}


def complete_folders(
    goal: Mapping[str, Entry | None], mine: Flat, theirs: Flat
) -> dict[str, Entry | None]:
    """Keep a folder that one side has removed if the other has put something into it."""
    held = {folder for path in after(mine, goal) for folder in above(path)}
    kept = {path: entry for path, entry in goal.items() if entry is not None or path not in held}
    for folder in sorted(held - mine.keys() - kept.keys()):
        if folder in theirs:
            kept[folder] = theirs[folder]
    return kept


# --- Three-way merge of a member's work into the workspace, over flat maps of what is where.

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


def merge_changes(base: Flat, mine: Flat, theirs: Flat, read: Read) -> Merge:
    """Bring what ``theirs`` has changed since ``base`` into ``mine``; nothing is changed itself.

    ``base`` has to be the first snapshot of the worktree that ``theirs`` is the last of: it knows
    the same ignore rules. With any conflict the goal is empty: half of a member's work may be worse
    than none. Blocks while git merges texts; ``read`` raises KeyError for what is not kept.
    """
    found = merge_paths(base, mine, theirs, read, ("the workspace", "the phase"))
    if found.clashes:
        return Merge({}, _conflicts(found))
    goal = {path: each.entry for path, each in found.taken.items()}
    return Merge(goal, (), _contents(found))


def with_markers(base: Flat, mine: Flat, theirs: Flat, read: Read, phase: str) -> Merge:
    """Return the goal for the worktree, made from ``mine``, in which conflicts are to be settled.

    It holds all of the member's changes. Texts in conflict have both versions between markers; of
    what else is in conflict PATH is as in the workspace, and PATH.phase-ID as the member has it.
    Raises :class:`ToolError` where no snapshot holds what the member has: it would be lost (PL-06).
    """
    found = merge_paths(base, mine, theirs, read, ("the workspace", f"phase {phase}"))
    if lost := [p for p in found.clashes if p in theirs and theirs[p].kind == "unread"]:
        why = f"it is too large, or may not be read: {', '.join(lost[:10])}"
        raise ToolError(f"not all that phase {phase} made can be laid out: {why}")
    aside = _aside(found, mine, theirs)
    goal: dict[str, Entry | None] = {
        path: each.entry
        for path, each in (found.taken | _marked(found)).items()
        if not any(_within(path, each) for each in aside)
    }
    names = mine.keys() | theirs.keys()
    for path in aside:
        goal |= _beside(path, theirs, phase, names)
    return Merge(complete_folders(goal, mine, theirs), _conflicts(found), _contents(found))


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
