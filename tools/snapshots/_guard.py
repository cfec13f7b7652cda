"""Snapshots around what may change the workspace, so that nothing it does is beyond recall."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from daruma.tools.snapshots._outcome import Snapshot, SnapshotUnavailable, Taken
from daruma.tools.snapshots._snapshots import Snapshots
from daruma.tools.threads import in_thread

T = TypeVar("T")


@dataclass(frozen=True)
class Begun:
    """The workspace before some work; ``again`` if that was begun before, and cut short."""

    snapshot: Snapshot
    again: bool = False


@dataclass
class SnapshotsAround:
    """The snapshots around a block: ``before`` it, and ``after`` it once that could be taken."""

    before: Snapshot | None = None
    after: Taken | None = None


@asynccontextmanager
async def with_snapshots(snapshots: Snapshots | None, what: str) -> AsyncIterator[SnapshotsAround]:
    """Take a snapshot before and after the block; with no snapshots at all, only run it.

    Raises :class:`~daruma.tools.snapshots.SnapshotUnavailable` before anything has run.
    """
    looks = SnapshotsAround()
    if snapshots is None:
        yield looks
        return
    before = await in_thread(snapshots.take, f"before {what}", by="work", opens=True)
    looks.before = before.snapshot
    try:
        yield looks
    finally:
        with suppress(SnapshotUnavailable):  # the next one holds it as well
            looks.after = await in_thread(snapshots.take, f"after {what}", by="work")


async def snapshot_before(snapshots: Snapshots, what: str) -> Begun:
    """Take the snapshot from before some work, unless a killed process took it already.

    ``what`` names this one time of it.
    """
    label = f"before {what}"
    for each in reversed(await in_thread(snapshots.kept)):
        if each.label == label:
            return Begun(each, again=True)
    taken = await in_thread(snapshots.take, label, by="work", opens=True)
    return Begun(taken.snapshot)


async def work_once(
    snapshots: Snapshots, what: str, work: Callable[[], Awaitable[T]]
) -> tuple[T, Snapshot]:
    """Do work that changes nothing but the workspace, as if it had never been cut short.

    Where a killed process had begun it, the workspace is put back to how it was before that.
    Returns what came of it, and the snapshot from before it.
    """
    before = await snapshot_before(snapshots, what)
    if before.again:
        await in_thread(snapshots.restore, before.snapshot.id, last="work", conflicts="overwrite")
    done = await work()
    await in_thread(snapshots.take, f"after {what}", by="work")
    return done, before.snapshot
