"""Writing savepoints: the workspace as it is, under a name that a thread can go back to."""

from dataclasses import dataclass
from typing import Final

from daruma.state.channels import State
from daruma.state.events import SavepointWritten
from daruma.state.savepoint import Savepoint, When, savepoint_id
from daruma.state.task import Task
from daruma.tools.context import Context
from daruma.tools.files.threads import in_thread
from daruma.tools.snapshots.outcome import Change, SnapshotUnavailable
from daruma.tools.snapshots.snapshots import By

OFF: Final = "no snapshot: rollback.snapshots is off"


@dataclass(frozen=True)
class Written:
    """What a node adds to the savepoints, and what has changed since the thread last looked."""

    savepoints: list[Savepoint]
    changes: tuple[Change, ...] = ()

    @property
    def missing(self) -> str:
        """Why there is no snapshot; empty where there is one, or no workspace."""
        return next((each.note for each in self.savepoints if each.snapshot is None), "")


async def write_savepoint(
    task: Task | None,
    when: When,
    context: Context,
    *,
    phase_id: str | None = None,
    by: By = "work",
    note: str = "",
    undo: str | None = None,
) -> Written:
    """Take a snapshot of a task's workspace and name it; a task without one has no savepoints.

    Where none can be taken the savepoint says so, and the work goes on.
    """
    if task is None or task.workspace is None:
        return Written([])
    id_, snapshots = savepoint_id(task.id, phase_id, when), context.snapshots(task.workspace)
    found, missing, changes = None, OFF, tuple[Change, ...]()
    if snapshots:
        try:
            taken = await in_thread(snapshots.take, f"savepoint {id_}", by=by, fresh=when == "task")
            found, missing, changes = taken.snapshot.id, "", taken.changes
        except SnapshotUnavailable as error:
            missing = str(error)
    said = "; ".join(each for each in (missing, note) if each)
    context.emit(SavepointWritten(savepoint_id=id_, snapshot=found, note=said))
    savepoint = Savepoint(
        id=id_,
        task_id=task.id,
        phase_id=phase_id,
        when=when,
        workspace=task.workspace,
        snapshot=found,
        note=said,
        undo=undo,
        at=context.now(),
    )
    return Written([savepoint], changes)


def start_of(state: State, phase_id: str) -> Savepoint | None:
    """Return the savepoint that was written before a phase of the task at hand began."""
    id_ = savepoint_id(state.task_id, phase_id, "phase")
    return next((each for each in reversed(state.savepoints) if each.id == id_), None)
