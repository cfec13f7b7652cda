"""What a thread has outside of the database: snapshots, edit histories, worktrees (DU-08).

All of it lies in Daruma's own folder on this host, and none of it in a workspace.
"""

import shutil
from collections.abc import Collection
from pathlib import Path

from daruma.state.plan import Plan
from daruma.tools.files import edit_folder
from daruma.tools.snapshots import Store, delete_snapshots, store_of
from daruma.tools.team import remove_worktree, worktree_folder
from daruma.tools.threads import in_thread


async def forget_belongings(
    thread: str, workspaces: Collection[str], plan: Plan | None = None
) -> None:
    """Delete what a thread has on this host; what is not there is no error.

    ``plan`` is the newest one: members may have left worktrees of its phases. Raises
    :class:`~daruma.tools.snapshots.SnapshotUnavailable` and
    :class:`~daruma.tools.team.WorktreeUnavailable` for what can not be deleted.
    """
    phases = [(plan.id, phase.id) for phase in plan.phases] if plan else []
    for workspace in map(Path, workspaces):
        folders = [worktree_folder(workspace, f"{thread}\0{id_}", of) for id_, of in phases]
        await in_thread(_forget_snapshots, workspace, thread)
        for place in (workspace, *folders):
            await in_thread(shutil.rmtree, edit_folder(place, thread), ignore_errors=True)
        for folder in folders:
            await remove_worktree(folder)


def _forget_snapshots(workspace: Path, thread: str) -> None:
    path = store_of(workspace)
    if path.exists():
        with Store(path).locked() as contents:
            delete_snapshots(contents, thread)
