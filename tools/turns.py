"""Calls that change one workspace take turns, so that one that was cut short can be undone alone.

Whoever comes first in a run undoes what an earlier run was killed in the middle of: before anything
is built on it.
"""

from asyncio import Lock
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from daruma.tools.files.threads import in_thread
from daruma.tools.journal import Journal
from daruma.tools.snapshots.kept import is_before
from daruma.tools.snapshots.outcome import (
    By,
    Restored,
    RestoreRefused,
    Snapshot,
    SnapshotUnavailable,
)
from daruma.tools.snapshots.putting_back import put_back_to
from daruma.tools.snapshots.snapshots import Snapshots


@dataclass
class Turn:
    """The turn in one workspace. ``undone`` has, by its key, what each call that was undone left.

    A key that is missing is that of a call which could not be undone.
    """

    lock: Lock = field(default_factory=Lock)
    undone: dict[str, Restored | None] | None = None


class Turns:
    """The turns of one run."""

    def __init__(self) -> None:
        self._turns: dict[str, Turn] = {}

    @asynccontextmanager
    async def turn(
        self, workspace: str, snapshots: Snapshots | None, journal: Journal
    ) -> AsyncIterator[Turn]:
        """Wait for one's turn in a workspace; an effect elsewhere needs none."""
        if not workspace:
            yield Turn(undone={})
            return
        turn = self._turns.setdefault(workspace, Turn())
        async with turn.lock:
            if turn.undone is None:
                turn.undone = await _undone(workspace, snapshots, journal)
            yield turn


async def _undone(
    workspace: str, snapshots: Snapshots | None, journal: Journal
) -> dict[str, Restored | None]:
    undone: dict[str, Restored | None] = {}
    for entry in await journal.cut_short(workspace):
        if snapshots is not None and entry.effect.settles == "restore":
            try:
                restored = await in_thread(put_back, snapshots, entry.key)
            except (SnapshotUnavailable, RestoreRefused):
                continue
            if restored is None or restored.exact:
                undone[entry.key] = restored
    return undone


def put_back(snapshots: Snapshots, key: str) -> Restored | None:
    """Put a workspace back to how it was before a call. Blocks.

    None if nothing of the call is there: it had not begun, or was put back by a run that was killed
    later. What others changed since the call had ended is kept. Where it was killed half-way nobody
    can tell what others did: what was there is in the snapshot ``Restored.before``. Raises
    :class:`~daruma.tools.snapshots.outcome.SnapshotUnavailable` where the call may have been made
    on another machine, or more was done since, which would be undone with it; ``RestoreRefused``
    where others changed what it had changed.
    """
    snapshots.recover()
    kept = snapshots.kept()
    if not kept:
        raise SnapshotUnavailable("this machine has no snapshots of the thread's work")
    begun = [n for n, each in enumerate(kept) if each.opens and is_before(each.label, key)]
    if not begun:
        return None
    before, since = kept[begun[-1]], kept[begun[-1] + 1 :]
    if _is_put_back(before, since):
        return None
    _refuse_more(snapshots, before, since)
    last: By = "work" if kept[-1].opens else "others"
    return snapshots.restore(before.id, last=last)


def _is_put_back(before: Snapshot, since: Sequence[Snapshot]) -> bool:
    return any(each.label == put_back_to(before) and each.root == before.root for each in since)


def _refuse_more(snapshots: Snapshots, before: Snapshot, since: Sequence[Snapshot]) -> None:
    """Raise SnapshotUnavailable if anything but this one call is known to have changed files."""
    own = put_back_to(before)
    if any(each.opens or (each.by == "undo" and each.label != own) for each in since):
        raise SnapshotUnavailable("more was done on this thread since the call was cut short")
    if snapshots.used_by_others(before):
        raise SnapshotUnavailable("another thread was at work here since the call was cut short")
