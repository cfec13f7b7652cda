"""Merging what two sides made of one path."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from daruma.tools.snapshots.entry import Entry, Kind
from daruma.tools.team.changes import NOT_KEPT
from daruma.tools.team.text_merge import NotMerged, is_text, merge_text

T = TypeVar("T")

Read: TypeAlias = Callable[[str], bytes]
"""Returns a content by its SHA-256."""

NAMES: Final[dict[Kind, str]] = {
    "file": "a file",
    "link": "a link",
    "directory": "a folder",
    "special": "no file but a socket, pipe or device",
    "unread": "too large, or may not be read",
}


@dataclass(frozen=True, slots=True)
class Versions:
    """One path before, in the workspace by now, and in the member's worktree; None for nothing."""

    base: Entry | None
    mine: Entry | None
    theirs: Entry | None


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


def three_way(of: Versions, read: Read, labels: tuple[str, str]) -> Taken | Clash:
    """Merge one path; ``labels`` name the two sides where lines of a text meet.

    Call it for what the member has changed. Equal changes of both sides are none.
    """
    base, mine, theirs = of.base, of.mine, of.theirs
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
