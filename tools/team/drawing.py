"""Giving a member a worktree to work in, drawn from the state of the workspace at its start."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from daruma.state.assignment import Assignment
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.errors import ToolError
from daruma.tools.files.threads import in_thread
from daruma.tools.snapshots.around import begun
from daruma.tools.snapshots.outcome import Snapshot
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.team.joining import lay_out
from daruma.tools.team.worktree import WorktreeUnavailable, make, remove
from daruma.tools.team.worktree_folder import worktree_folder


@dataclass(frozen=True)
class Drawn:
    """A worktree; ``began`` is its first snapshot, ``note`` says what is missing in it."""

    folder: Path
    began: Snapshot
    snapshots: Snapshots
    note: str = ""


async def drawn(given: Assignment, context: Context) -> Drawn | None:
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
    own = Snapshots(folder, context.thread_id, snapshots.store, exclude=snapshots.exclude)
    began = (await begun(own, f"the work on {phase.id} from {given.snapshot}")).snapshot
    if given.unmerged and phase.settles:
        await in_thread(lay_out, own, began.id, *given.unmerged, phase.settles)
    return Drawn(folder, began, own, made.note)


async def clear_away(task: Task | None, plan_id: str, phase_id: str, context: Context) -> None:
    """Remove the worktree of a phase whose work is merged: the snapshots hold what was in it.

    That of a phase that failed stays, to be looked at, until the phase is done again.
    """
    if task is None or task.workspace is None or not context.settings.rollback.snapshots:
        return
    with suppress(WorktreeUnavailable):
        await remove(_folder(task.workspace, plan_id, phase_id, context))


def _folder(workspace: str, plan_id: str, phase_id: str, context: Context) -> Path:
    return worktree_folder(Path(workspace), f"{context.thread_id}\0{plan_id}", phase_id)
