"""The snapshots of one workspace, as one thread takes them: around work, and ahead of a restore."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

from daruma.tools.files import FETCHED, Parts
from daruma.tools.snapshots._ignore import decoded
from daruma.tools.snapshots._records import Recorder, prune
from daruma.tools.snapshots._restore import Restore
from daruma.tools.snapshots._states import (
    Difference,
    Look,
    as_changes,
    between,
    differences,
    materialise,
    meant,
    seen_again,
    status_of,
    unheld,
)
from daruma.tools.snapshots._store import (
    Change,
    ChangedBy,
    Conflicts,
    Entry,
    Restored,
    Snapshot,
    SnapshotUnavailable,
    Taken,
    plain,
    told,
    told_of,
    workspace_opened,
)
from daruma.tools.threads import in_thread

# --- The snapshots of one workspace, as one thread takes them.


class Snapshots(Recorder):
    """Takes snapshots of a workspace for a thread, compares them, and puts them back.

    All methods block: call them in a thread. Several threads and processes may use one store. All
    raise SnapshotUnavailable: a workspace or snapshot that is not there, a store that can not be
    used. What lies outside (ignored files) is never read, nor ever touched.
    """

    def take(self, label: str, *, by: ChangedBy, fresh: bool = False, opens: bool = False) -> Taken:
        """Keep the workspace as it is. ``fresh`` reads the ignore rules anew, as at a task's start.

        Otherwise those of the thread's last snapshot hold, so that the work can not hide files.
        ``opens`` says that work begins: what is found changed by others, should a crash cut it
        short, is put down to that work.
        """
        with self.store.locked() as contents, workspace_opened(self.workspace) as top:
            Restore(self, contents, top).recover()
            return self.taken(contents, top, label, by=by, fresh=fresh, opens=opens)

    def open(self, label: str) -> None:
        """Say that work begins, without a look at the workspace; nothing if none was taken yet."""
        with self.store.locked() as contents:
            recorded = self.recorded(contents)
            if last := recorded.last():
                held = last.root, last.rules, self.now(), last.unkept
                recorded.add(label, "work", *held, opens=True)

    def note(self, paths: Iterable[str], label: str) -> None:
        """Note that the work has changed exactly these files: only they are read again.

        They may be given as an editor takes them: absolute, or through links. Where one can not be
        told, nothing is noted, and what the next look finds is still put down to the work.
        """
        with self.store.locked() as contents, workspace_opened(self.workspace) as top:
            Restore(self, contents, top).recover()
            recorded = self.recorded(contents)
            last = recorded.last()
            if last is None:
                return
            rules, root = decoded(contents.blob(last.rules)), last.root
            with told_of(self.workspace):
                for path in paths:
                    parts = meant(self.workspace, path)
                    root = seen_again(contents, root, top, parts, rules)
            if root != last.root or last.opens:
                recorded.add(label, "work", root, last.rules, self.now(), last.unkept)

    def kept(self) -> tuple[Snapshot, ...]:
        """Return the snapshots of this thread and workspace, oldest first."""
        with self.store.locked() as contents:
            return tuple(self.recorded(contents).all())

    def used_by_others(self, since: Snapshot) -> bool:
        """Whether another thread took a snapshot of this workspace later than that one."""
        with self.store.locked() as contents:
            return self.recorded(contents).others_since(since.number)

    def changes(self, before: str, after: str | None = None) -> tuple[Change, ...]:
        """Return what differs between two snapshots, or a snapshot and the workspace as it is."""
        with self.store.locked() as contents:
            recorded = self.recorded(contents)
            old = recorded.named(before)
            if after is not None:
                return as_changes(between(contents, old, recorded.named(after)))
            with workspace_opened(self.workspace) as top:
                root, _ = self.seen(contents, top, decoded(contents.blob(old.rules)))
            return as_changes(differences(contents.tree, old.root, root))

    def prune(self, *, older_than: float, keep: Collection[str] = ()) -> int:
        """Delete snapshots older than so many seconds, but those of ``keep``; return how many.

        Those of all threads of the store are meant. What only they held goes too, and the file
        shrinks.
        """
        with self.store.locked() as contents:
            return prune(contents, before=self.now() - older_than, keep=keep)

    def materialise(self, snapshot: str, folder: Path) -> None:
        """Write a snapshot's files into a new or empty folder: modes, links, empty directories."""
        with self.store.locked() as contents:
            materialise(contents, self.recorded(contents).named(snapshot).root, folder)

    def stand_in(self, snapshot: str, folder: Path, beside: Path) -> None:
        """Write a snapshot's files into a new folder, with links to what no snapshot holds.

        Those lead to where the workspace is seen then, ``beside``: ignored files, such as an
        environment or what was built, and the repository. What is made anew by every run is not.
        """
        with self.store.locked() as contents:
            taken = self.recorded(contents).named(snapshot)
            materialise(contents, taken.root, folder)
            rules = decoded(contents.blob(taken.rules))
        with told_of(self.workspace):
            unkept = [tuple(each.split("/")) for each in taken.unkept]
            for parts in (*unkept, *unheld(self.workspace, rules)):
                place = folder.joinpath(*parts)
                if place.parent.is_dir() and not os.path.lexists(place):
                    place.symlink_to(beside.joinpath(*parts))

    def unheld(self, began: str, ended: str) -> tuple[str, ...]:
        """Return what was made since one snapshot and another lacks; no caches or dependencies."""
        with self.store.locked() as contents:
            old, new = map(self.recorded(contents).named, (began, ended))
            rules = decoded(contents.blob(new.rules))
        with told_of(self.workspace):
            ignored = [p for p in unheld(self.workspace, rules) if FETCHED.isdisjoint(p)]
            made = [each for each in ignored if _is_new(self.workspace.joinpath(*each), old.at)]
        return (*new.unkept, *sorted(told(each) for each in made if each[-1] != ".git"))

    def spoiled(self, snapshot: str, until: float = float("inf")) -> tuple[str, ...]:
        """Return what was ignored then and is gone, or has changed before ``until``."""
        with self.store.locked() as contents:
            rules = decoded(contents.blob(self.recorded(contents).named(snapshot).rules))
        now = ((path, was, status_of(self.workspace / path)) for path, was in rules.ignored.items())
        return tuple(told((path,)) for path, was, (is_, at) in now if is_ != was and at < until)

    def text(self, snapshot: str, path: str) -> str | None:
        """Return what a file held in a snapshot; None where it was no file, or is not kept."""
        with self.store.locked() as contents:
            root = self.recorded(contents).named(snapshot).root
            entry = Look(contents.tree, root)(tuple(path.split("/")))
            if entry is None or entry.kind != "file":
                return None
            return contents.blob(entry.content).decode(errors="replace")

    def restore(
        self,
        target: str,
        *,
        last: ChangedBy = "others",
        conflicts: Conflicts = "refuse",
        by: ChangedBy = "undo",
    ) -> Restored:
        """Put back what the work has changed since a snapshot of this thread.

        ``last`` says who made the changes since the thread's last snapshot. What somebody else has
        changed is kept; what both have changed is a conflict. Raises RestoreRefused; nothing was
        changed then.
        """
        with self.store.locked() as contents, workspace_opened(self.workspace) as top:
            restore = Restore(self, contents, top)
            return restore.restore(target, last=last, conflicts=conflicts, by=by)

    def recover(self) -> Restored | None:
        """Finish a restore of this workspace that a crash has cut short, if there is one."""
        with self.store.locked() as contents, workspace_opened(self.workspace) as top:
            return Restore(self, contents, top).recover()

    def apply(self, goal: Mapping[str, Entry | None], label: str, *, by: ChangedBy) -> Restored:
        """Put single paths to entries whose contents are in the store; None deletes."""
        parts = {plain(path): entry for path, entry in goal.items()}
        with self.store.locked() as contents, workspace_opened(self.workspace) as top:
            return Restore(self, contents, top).apply(parts, label, by=by)


def _is_new(top: Path, since: float) -> bool:
    """Whether it, or what lies in it, has changed: rules may be newer than what they ignore."""
    every = chain([top], () if top.is_symlink() else top.rglob("*"))
    return any(each.lstat().st_ctime > since for each in every)


# --- What putting back a snapshot would do, looked at beforehand and without a trace.


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be done to which path; ``conflicts`` were changed by the work and others too."""

    changes: tuple[Change, ...]
    conflicts: tuple[str, ...] = ()


def _opened(found: Difference, goal: Collection[Parts]) -> bool:
    """Whether it is a directory that comes or goes with what lies in it, which says it all."""
    path, was, now = found
    kinds = {each.kind for each in (was, now) if each}
    alone = (was is None or now is None) and kinds == {"directory"}
    return alone and any(other[: len(path)] == path for other in goal if len(other) > len(path))


class _Seen(Exception):
    def __init__(self, preview: Preview) -> None:
        self.preview = preview


def preview_restore(
    snapshots: Snapshots,
    target: str,
    *,
    last: ChangedBy = "others",
    conflicts: Conflicts = "refuse",
) -> Preview:
    """Say what `Snapshots.restore` would do now; blocks.

    Nothing is kept of the look: what others changed is still to be found by whoever looks next.
    Raises SnapshotUnavailable.
    """
    snapshots.recover()
    try:
        with snapshots.store.locked() as contents, workspace_opened(snapshots.workspace) as top:
            plan, now = Restore(snapshots, contents, top).foreseen(
                target, last=last, overwrite=conflicts == "overwrite"
            )
            found = [(path, now(path), goal) for path, goal in plan.goal.items()]
            changes = as_changes(each for each in found if not _opened(each, plan.goal))
            raise _Seen(Preview(changes, tuple(sorted(map(told, plan.conflicts)))))
    except _Seen as seen:  # raised, so that the store takes back all that was written
        return seen.preview


# --- Snapshots around what may change the workspace, so that nothing it does is beyond recall.

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
