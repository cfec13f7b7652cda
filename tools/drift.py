"""Drift: files of a thread's workspace that somebody else changed (RO-07)."""

from collections.abc import Iterable
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage

from daruma.state.channels import State
from daruma.state.drifted import Drifted
from daruma.state.events import WorkspaceDrifted
from daruma.state.result_of import named
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.files.threads import in_thread
from daruma.tools.files.tree_parts import counts
from daruma.tools.snapshots.outcome import Change, SnapshotUnavailable

MOST: Final = 100
"""Paths that are kept on record; of more, the first."""

NOTE: Final = "Note: since this workspace was last looked at, somebody else changed: "


async def drift(task: Task | None, context: Context) -> Drifted | None:
    """Look for files that changed since the thread last looked, and tell of them."""
    snapshots = context.snapshots(task.workspace if task else None)
    if snapshots is None or task is None or task.expert or not await in_thread(snapshots.kept):
        return None
    try:
        taken = await in_thread(snapshots.take, "on going on", by="others")
    except SnapshotUnavailable:
        return None  # whoever needs one will say so
    return drifted(task, taken.changes, context)


def drifted(task: Task, changes: Iterable[Change], context: Context) -> Drifted | None:
    """Tell of what was changed by others, unless it comes and goes by itself, as caches do."""
    paths = tuple(each.path for each in changes if counts(each.path))
    if not paths:
        return None
    context.emit(WorkspaceDrifted(paths=paths[:MOST], total=len(paths)))
    return Drifted(task_id=task.id, paths=paths[:MOST])


def drift_note(state: State) -> list[AnyMessage]:
    """Return what a model is told of it, behind all that was said."""
    if state.drifted is None or state.drifted.task_id != state.task_id:
        return []
    return [HumanMessage(f"{NOTE}{named(state.drifted.paths)}. Look again before you rely on it.")]
