"""Putting a thread's workspace back (RO-07): which state is meant, and whether it can be had.

The state of the thread stays as it is: the next run on it reports that the files have changed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from langgraph.types import StateSnapshot

from daruma.graph.reopening import is_teams
from daruma.state.channels import State
from daruma.state.errors import DarumaError
from daruma.state.plan import first_failed
from daruma.state.savepoint import Savepoint, latest, newest_of_each, savepoint_id
from daruma.tools.files.workspace import workspace_locked
from daruma.tools.snapshots.outcome import Conflicts, Restored
from daruma.tools.snapshots.snapshots import Snapshots
from daruma.tools.snapshots.store import Store, store_of


class UndoRefused(DarumaError):
    """Raised when there is no such state to go back to; nothing has changed."""


@dataclass(frozen=True)
class Place:
    """A state that a workspace can be put back to: one of a thread's snapshots of it.

    ``savepoint`` is the one that names the snapshot, if any does.
    """

    thread: str
    workspace: str
    snapshot: str
    savepoint: Savepoint | None = None


def savepoints_of(past: StateSnapshot) -> tuple[Savepoint, ...]:
    """Return the savepoints of a thread, oldest first; of one that was taken again, the last.

    Raises :class:`UndoRefused` where there is no such thread.
    """
    return newest_of_each(_state(past).savepoints)


def undone(
    past: StateSnapshot, to: str | None, conflicts: Conflicts, *, travelled: bool = False
) -> Restored:
    """Put the workspace of a thread back, where all is there for it; blocks.

    ``to`` names a savepoint or a snapshot; None means the start of the newest task or, for one who
    ``travelled`` back to a checkpoint, the newest savepoint of that. Raises :class:`UndoRefused`,
    :class:`~daruma.tools.snapshots.outcome.RestoreRefused` for conflicts,
    :class:`~daruma.tools.snapshots.outcome.SnapshotUnavailable`, and
    :class:`~daruma.state.errors.WorkspaceBusy`.
    """
    place = place_of(past, to, travelled=travelled)
    with workspace_locked(place.workspace):  # that of a savepoint may not be the newest task's
        kept = snapshots_of(place.workspace, place.thread)
        return kept.restore(place.snapshot, conflicts=conflicts)


def place_of(past: StateSnapshot, to: str | None, *, travelled: bool = False) -> Place:
    """Return the state that is meant; blocks. Raises :class:`UndoRefused`."""
    state, thread = _state(past), _thread_of(past)
    if to is None:
        return _of_savepoint(_expected(state, travelled=travelled), thread)
    if found := latest(state.savepoints, to):
        return _of_savepoint(found, thread)
    for workspace in _workspaces(state):
        if to in _kept(workspace, thread):
            return Place(thread, workspace, to)
    raise UndoRefused(_unknown(to, state.savepoints))


def brought_back(past: StateSnapshot) -> Restored | None:
    """Put the files of a failed task back to how they were when its first phase failed; blocks.

    So that what is tried again meets the files it knows: what was rolled back since is there again,
    what later phases did is not. What somebody else changed is kept. None where nothing is known of
    them, as on another machine, and for a team, whose failed work never came into the workspace.
    """
    state = _state(past)
    fallen = first_failed(state.plan) if state.plan and not is_teams(state) else None
    id_ = savepoint_id(state.task_id, fallen.id, "done") if fallen else ""
    done = latest(state.savepoints, id_)
    then = (done.undo or done.snapshot) if done else None
    if done is None or then is None or not Path(done.workspace).is_dir():
        return None
    thread = _thread_of(past)
    if then not in _kept(done.workspace, thread):
        return None
    return snapshots_of(done.workspace, thread).restore(then, conflicts="keep")


def snapshots_of(workspace: str, thread: str) -> Snapshots:
    """Return the snapshots that a thread has of a workspace.

    What they leave alone was settled when they were taken.
    """
    return Snapshots(Path(workspace), thread, Store(store_of(Path(workspace))))


def _state(past: StateSnapshot) -> State:
    if past.created_at is None:
        asked = past.config.get("configurable", {}).get("checkpoint_id")
        what = f"checkpoint {asked!r} on thread" if asked else "thread"
        raise UndoRefused(f"there is no {what} {_thread_of(past)!r}")
    return State(**past.values)


def _thread_of(past: StateSnapshot) -> str:
    return str(past.config.get("configurable", {}).get("thread_id"))


def _expected(state: State, *, travelled: bool) -> Savepoint:
    """Return the savepoint that is meant where none is named."""
    if state.task is None or state.task.workspace is None:
        raise UndoRefused("the newest task of this thread has no workspace: name a savepoint")
    if travelled:
        found = next(reversed(_of_workspace(state, state.task.workspace)), None)
        missing = "no savepoint had been taken by that checkpoint"
    else:
        found = latest(state.savepoints, savepoint_id(state.task.id, None, "task"))
        missing = f"no savepoint was taken when task {state.task.id} began"
    if found is None:
        raise UndoRefused(f"{missing}; {_there_are(state.savepoints)}")
    return found


def _of_workspace(state: State, workspace: str) -> list[Savepoint]:
    return [each for each in state.savepoints if each.workspace == workspace]


def _of_savepoint(savepoint: Savepoint, thread: str) -> Place:
    if savepoint.snapshot is None:
        raise UndoRefused(
            f"savepoint {savepoint.id!r} can not be gone back to: "
            + (savepoint.note or "it has no snapshot")
        )
    if not Path(savepoint.workspace).is_dir():
        raise UndoRefused(
            f"the workspace {savepoint.workspace} is not there: make the folder, or undo on the "
            "machine that has it"
        )
    if savepoint.snapshot not in _kept(savepoint.workspace, thread):
        raise UndoRefused(
            f"snapshot {savepoint.snapshot} of savepoint {savepoint.id!r} is not on this machine: "
            "it was taken on another, or deleted after rollback.keep_days"
        )
    return Place(thread, savepoint.workspace, savepoint.snapshot, savepoint)


def _workspaces(state: State) -> Iterable[str]:
    own = [state.task.workspace] if state.task and state.task.workspace else []
    return dict.fromkeys([*own, *(each.workspace for each in reversed(state.savepoints))])


def _kept(workspace: str, thread: str) -> frozenset[str]:
    if not store_of(Path(workspace)).exists():
        return frozenset()  # looking for it would make it
    return frozenset(each.id for each in snapshots_of(workspace, thread).kept())


def _unknown(to: str, savepoints: Sequence[Savepoint]) -> str:
    near = get_close_matches(to, [each.id for each in savepoints], n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    missing = f"no savepoint or snapshot {to!r} is on this machine"
    return f"{missing}; {meant}{_there_are(savepoints)}"


def _there_are(savepoints: Sequence[Savepoint]) -> str:
    names = list(dict.fromkeys(each.id for each in savepoints))
    more = f" and {len(names) - 20} earlier ones" if len(names) > 20 else ""
    return f"there are: {', '.join(names[-20:])}{more}" if names else "this thread has none"
