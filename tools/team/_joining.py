"""A member's worktree: drawn from the workspace at its start, brought into it at its end."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from daruma.state.errors import DarumaError
from daruma.state.plan import Assignment
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.files import is_lasting
from daruma.tools.snapshots import Entry, Snapshot, Snapshots, SnapshotUnavailable, snapshot_before
from daruma.tools.team._merging import Flat, Merge, changed, flat, merged, with_markers
from daruma.tools.team._worktree import WorktreeUnavailable, make, remove_worktree, worktree_folder
from daruma.tools.threads import in_thread

# --- Bringing a member's work from its worktree into the workspace; all of it, or none.

_MARKED: Final = "conflicts to settle"


MARKER: Final = b"<<<<<<< the workspace\n"
"""Begins a conflict in a text: ``text_merge.py``."""


class Unsettled(DarumaError):
    """Raised when what was to settle a conflict still holds both sides of it."""


@dataclass(frozen=True)
class JoinOutcome:
    """The paths of a member's work that are in the workspace, or those in conflict, with why."""

    paths: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def join_work(workspace: Snapshots, began: str, ended: str, label: str) -> JoinOutcome:
    """Bring what changed between two snapshots of a worktree into the workspace.

    Done again it changes nothing. Blocks. Raises
    :class:`~daruma.tools.snapshots.SnapshotUnavailable`, also for a workspace that could
    not be brought to what was meant.
    """
    now = workspace.take(f"before {label}", by="others", opens=True).snapshot.id
    merge, paths = _merge(workspace, now, began, ended, None)
    if merge.conflicts:
        return JoinOutcome(conflicts=tuple(f"{each.path} ({each.why})" for each in merge.conflicts))
    _apply(workspace, merge.goal, label)
    return JoinOutcome(paths=paths)  # also where a killed run had brought them in


def check_settled(workspace: Snapshots, began: str, ended: str) -> None:
    """Look for what a member that settles a conflict has left behind of it; blocks.

    Raises :class:`Unsettled` for texts with markers in them, and second versions of files.
    """
    with workspace.store.locked() as contents:
        recorded = workspace.recorded(contents)
        roots = [recorded.named(each).root for each in (began, ended)]
        base, theirs = (_lasting(flat(contents.tree, root)) for root in roots)
        left = []
        for path in changed(base, theirs):
            now = theirs.get(path)
            second = path not in base and ".phase-" in path.rpartition("/")[2]
            marked = now and now.kind == "file" and MARKER in contents.blob(now.content)
            if now and (second or marked):
                left.append(path)
    if left:
        raise Unsettled(f"the conflict is not settled in: {', '.join(left[:10])}")


def lay_out(worktree: Snapshots, here: str, began: str, ended: str, phase: str) -> None:
    """Bring conflicting work into the worktree in which it is settled, with markers; once.

    ``here`` is the snapshot that this worktree began with. Blocks.
    """
    label = f"{_MARKED}: {phase} from {here}"
    if any(each.label == label for each in worktree.kept()):
        return
    merge, _ = _merge(worktree, here, began, ended, phase)
    _apply(worktree, merge.goal, label)


def _merge(
    snapshots: Snapshots, mine: str, began: str, ended: str, phase: str | None
) -> tuple[Merge, tuple[str, ...]]:
    """Return the merge, its contents stored, and the paths that the work has changed."""
    with snapshots.store.locked() as contents:
        recorded = snapshots.recorded(contents)
        roots = [recorded.named(each).root for each in (began, mine, ended)]
        base, own, theirs = (_lasting(flat(contents.tree, root)) for root in roots)
        if phase is None:
            merge = merged(base, own, theirs, contents.blob)
        else:
            merge = with_markers(base, own, theirs, contents.blob, phase)
        for data in merge.contents.values():
            contents.put_blob(data)
    return merge, tuple(changed(base, theirs))


def _lasting(there: Flat) -> Flat:
    """Return a state without caches and the like: they are remade, and would only conflict."""
    return {
        path: entry
        for path, entry in there.items()
        if is_lasting(path, directory=entry.kind == "directory")
    }


def _apply(snapshots: Snapshots, goal: Mapping[str, Entry | None], label: str) -> None:
    done = snapshots.apply(goal, label, by="work")
    if not done.exact:
        raise SnapshotUnavailable(f"{label}: these could not be written: {', '.join(done.left)}")


# --- Giving a member a worktree to work in, drawn from the state of the workspace at its start.


@dataclass(frozen=True)
class MemberWorktree:
    """A worktree; ``began`` is its first snapshot, ``note`` says what is missing in it."""

    folder: Path
    began: Snapshot
    snapshots: Snapshots
    note: str = ""


async def make_worktree(given: Assignment, context: Context) -> MemberWorktree | None:
    """Make the worktree of a phase, or find it as it was left; None for a task without workspace.

    What is to be settled in it is laid out, once. Raises :class:`ToolError`, and what snapshots and
    worktrees raise.
    """
    workspace, phase = given.task.workspace, given.phase
    if workspace is None:
        return None
    snapshots = context.snapshots(workspace)
    if snapshots is None or given.snapshot is None:
        raise ToolError(
            f"phase {phase.id!r} has no worktree: a team works on snapshots of the workspace, and "
            "there is none (rollback.snapshots)"
        )
    folder = _folder(workspace, given.plan_id, phase.id, context)
    made = await make(Path(workspace), given.snapshot, folder, snapshots)
    own = Snapshots(folder, context.files_of, snapshots.store, exclude=snapshots.exclude)
    began = (await snapshot_before(own, f"the work on {phase.id} from {given.snapshot}")).snapshot
    if given.unmerged and phase.settles:
        await in_thread(lay_out, own, began.id, *given.unmerged, phase.settles)
    return MemberWorktree(folder, began, own, made.note)


async def clear_away(task: Task | None, plan_id: str, phase_id: str, context: Context) -> None:
    """Remove the worktree of a phase whose work is merged: the snapshots hold what was in it.

    That of a phase that failed stays, to be looked at, until the phase is done again.
    """
    if task is None or task.workspace is None or not context.settings.rollback.snapshots:
        return
    with suppress(WorktreeUnavailable):
        await remove_worktree(_folder(task.workspace, plan_id, phase_id, context))


def _folder(workspace: str, plan_id: str, phase_id: str, context: Context) -> Path:
    return worktree_folder(Path(workspace), f"{context.files_of}\0{plan_id}", phase_id)
